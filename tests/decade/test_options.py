"""What the scripts that train networks are asked."""

import pytest

from affscore_study.decade.options import asked_data, training_options


def test_few_images_are_the_first_of_all():
    parser = training_options("Train.", "here", ["vgg11"])
    whole, few = (asked_data(parser.parse_args(given), 7) for given in ([], ["--smoke"]))
    assert len(few.train.images) == 7 < len(whole.train.images)
    assert few.train.images.equal(whole.train.images[:7])


def test_an_unknown_network_is_refused(capsys):
    with pytest.raises(SystemExit):
        training_options("Train.", "here", ["vgg11"]).parse_args(["--only", "vgg12"])
    assert "invalid choice: 'vgg12'" in capsys.readouterr().err
