"""The book's style is the same whatever the reader's settings are, and changes none of them."""

import matplotlib.pyplot as plt
import pytest

from affscore_book.kit.style import BLUE, GREEN, INK, ORANGE, PURPLE, SKY, VERMILION, WIDTH, panels, styled


@styled
def drawn(fail=False):
    figure, axes = panels(2, 2, height=3)
    if fail:
        raise KeyError("as planned")
    return figure, axes, plt.rcParams["font.size"]


@pytest.mark.parametrize("size", [5, 30])
def test_the_style_holds_inside_and_the_readers_outside(size):
    with plt.rc_context({"font.size": size}):
        figure, axes, inside = drawn()
        assert len(axes) == 4 and figure.get_figwidth() == WIDTH and inside == 15
        assert plt.rcParams["font.size"] == size
        with pytest.raises(KeyError):
            drawn(fail=True)
        assert plt.rcParams["font.size"] == size
    plt.close("all")


def luminance(colour):
    """Relative luminance of the WCAG."""
    parts = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    linear = (v / 12.92 if v <= 0.03928 else ((v + 0.055) / 1.055) ** 2.4 for v in parts)
    return sum(weight * value for weight, value in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_colours_of_lines_stand_out_on_white():
    """3 : 1 is what the WCAG asks of graphics; the light blue is for areas."""
    contrast = {name: 1.05 / (luminance(name) + 0.05) for name in (BLUE, VERMILION, GREEN, PURPLE, ORANGE, INK, SKY)}
    assert [name for name, value in contrast.items() if value < 3] == [SKY]
