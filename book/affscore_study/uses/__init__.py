"""The study of uses of the score: the rules of three experiments, which were committed before their first run.

What is common to all
---------------------
*Unit.* Networks, families of them left out one at a time (the jackknife), with Student's interval at 95 % and one
degree of freedom less than there are families; an interval of width 0 is not estimable. *Failed runs.* A network
that cannot be measured, or a call whose measure is undefined, is counted and left out; nothing is repeated until it
works. *Pilots.* Two pilots on seed 0 of the decade set these questions, so that seed is exploratory wherever its
weights are used for E1 and E2. Two networks were used to time the code and their numbers were seen: ``resnet20_1``
and ``myrtle_without_norm_0``; neither takes part. *Other results* than the primary ones are labelled exploratory.

E1, the cost of one call
------------------------
One activation call is replaced by the least-squares line of each channel, fitted on 256 training images (128 crops
for EfficientNet-Lite0, 32 windows of 128 bytes for the GPT). Outcome: log10(KL + 1e-4) between the logits before and
after, on 500 test images (128 other crops, 32 windows of text that was held out). The token score takes 2,048 random
positions of the training images as samples. Gates are left as they are. A network needs four calls. *H1.* Within a
network, the rank correlation of 1 − token score with the outcome, given position, its square, log channels, log
positions and the variance share (how much of the output's variance lies between images, and not between positions of
one) is above 0 with its whole interval, and at least .2. *H2, which decides whether it is of use.* The same given
the unexplained share 1 − paired R² of the same lines on the test images too: above 0, and at least .1. H2 is asked
only if H1 holds, so no correction for two tests is due. Otherwise undecided; refuted if the interval lies below the
mean that is asked for. A network of seven calls cannot hold five controls, so all calls enter one regression on
ranks that are centred within networks, in which every family has the same weight: this is a change of the plan, made
before the run. *Rivals:* paired R², the entropy of the sign (EASIER), CKA, sparsity, position. *Nulls:* the score
shuffled within networks a thousand times; the score's gap to its linear twin in its place. *Power*
(:func:`affscore_study.uses.power.power_of_mean`): the pilot's .36 [.12, .60] over nine families means a standard
deviation of .31 between families. With eight families H1 is then found in about .8 of all cases, H2 at a true .2 in
about a third, and at the pilot's .07 hardly ever: failing to find H2 is weak evidence, an interval is what counts.

E2, a quarter of the calls
--------------------------
A tenth, a quarter and a half of a network's calls (not gates) are made affine without training, lines fitted one
after another on the same 256 images, in the order of: token score, paired R², sign entropy, latest first, five
random orders, true single costs (on E1's test images). Accuracy on 1,000 other test images. Networks of E1 with six
calls or more whose images have labels. *Primary:* area under accuracy from none to half, score − latest first and
score − paired R², each family with the same weight; an order is of use if both intervals lie above 0 and both means
are at least one point. If both hold 0 the chapter says that the score is of no use here. *Power:* no spread is
stored; with five families an interval is 1.24 standard deviations between families wide to each side, so that a
point is found only if families differ by less than .8. *Fine-tuning* after removal came later and
has its rules in :mod:`affscore_study.uses.finetuning`.

E5, a smoke alarm
-----------------
Networks of the decade, seed 0: alexnet, vgg11_bn, resnet18, mobilenet_v3, vit_8 (five families). Batches of 64
images: 20 that the monitors know, 100 clean ones that set the alarm (above the largest of them: one false alarm in
a hundred), four more that go wrong in ten ways, in an eighth, a half or all of their images. A monitor's distance is
the mean of |z| over its readings. *Primary:* sensitivity, mean over kinds and strengths, of the signature (spatial
pool) − that of the mean and deviation of each call's input, Student's interval over the five networks; the score is
of use if it lies above 0. *Also:* it "wins somewhere" if for one of the ten kinds its lead over every cheaper
monitor is above 0 with Holm's correction over the ten. *Cheaper monitors:* means and deviations of the input; of
each call's input, over everything or channel by channel; batch norm's own statistics; the softmax's confidence.
*Power:* with five networks an interval is 1.24 standard deviations of the leads wide to each side; none is stored.

Scaled down
-----------
The machine is shared. Against the plan: 256 instead of 512 images for the lines, 500 instead of 2,000 for the cost,
five random orders instead of ten, three strengths instead of five, the decade's first seed alone in E5, one Lite, no
MiniLM (it has no logits). E4, whether the score *causes* anything, came later and has its rules in
:mod:`affscore_study.uses.target_claims`.
"""
