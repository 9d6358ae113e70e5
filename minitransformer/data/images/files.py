"""Files of pictures, PNG and JPEG, made arrays of bytes of one size.

Pillow reads them, and no other format. What has another form than a grey or colour picture of eight
bits is brought into it:

    turned by the camera        turned back, as its EXIF note says
    16 bits of grey             to the nearest of 256
    16 bits of colour           without the lower eight, which Pillow drops
    a palette, CMYK             to its red, green and blue, by Pillow's formulas, without profiles
    transparent                 laid on white

Then the shorter side is scaled to the size, and the longer one cut off evenly on both sides.
"""

import warnings

import numpy as np

from minitransformer.core.libraries import library
from minitransformer.core.regular_file import open_regular
from minitransformer.data.errors import PictureError

FORMATS = "PNG", "JPEG"
MOST_BYTES = 10**8
# Pillow's modes: without colour, with
GREYS, COLOURS = {"1", "L", "LA", "I;16", "I;16B", "I"}, {"P", "RGB", "RGBA", "CMYK"}
PURPOSE = "a file of a picture"


def read_picture(path, shape):
    """The picture in a file as an array of a shape, uint8.

    Args:
        shape: (Y, X, C), C = 1 for grey or 3 for colour. Which a file has does not matter.

    Raises:
        PictureError: it is no picture that can be used; says which file, why, and what to do.
        MissingLibraryError: there is no Pillow.
    """
    image = open_picture(path, shape[:2])
    return np.asarray(image.convert("L" if shape[2] == 1 else "RGB")).reshape(shape)


def open_picture(path, size):
    """The picture in a file as a Pillow image of size (Y, X), of mode L, if it is grey, or RGB.

    Raises:
        PictureError, MissingLibraryError: as for :func:`read_picture`.
    """
    pillow = library("PIL.Image", PURPOSE)
    operations = library("PIL.ImageOps", PURPOSE)
    try:
        with open_regular(path, MOST_BYTES) as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what is odd and harmless in a file
            warnings.simplefilter("error", pillow.DecompressionBombWarning)
            image = pillow.open(file, formats=FORMATS)
            least = 2 * max(size)
            image.draft(None, (least, least))  # a large JPEG is made smaller, sooner
            image = _plain(operations.exif_transpose(image), pillow)
            return operations.fit(image, size[::-1], pillow.Resampling.BILINEAR)
    except MemoryError:
        raise
    except Exception as error:  # Pillow meets damage with any of a dozen types
        raise PictureError(f"{path} {_problem(error, pillow)}") from error


def _plain(image, pillow):
    """The image as one of grey, L, or of colours, RGB."""
    if image.mode not in GREYS | COLOURS:
        raise ValueError(f"its mode is {image.mode}")
    plain = "L" if image.mode in GREYS else "RGB"
    if image.mode.startswith("I"):
        image = pillow.fromarray(((np.asarray(image, np.int32) + 128) // 257).astype(np.uint8))
    if image.has_transparency_data:
        image = image.convert("RGBA")
        image = pillow.alpha_composite(pillow.new("RGBA", image.size, "white"), image)
    return image.convert(plain)


def _problem(error, pillow):
    """What is wrong with the file of an error, and what to do."""
    if isinstance(error, pillow.UnidentifiedImageError):
        return "is no PNG or JPEG; save the picture as one of them"
    if isinstance(error, pillow.DecompressionBombWarning | pillow.DecompressionBombError):
        return f"has more than {pillow.MAX_IMAGE_PIXELS:,} pixels; make it smaller"
    if isinstance(error, OSError) and error.strerror:
        return f"cannot be read: {error.strerror}"
    return f"is damaged, or not whole: {error}; save the picture anew"
