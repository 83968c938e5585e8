import sys

from affscore_book.course.verify import main

sys.exit(main())
