"""A learner's file is found, run and judged; what is missing in it is said."""

import sys

import pytest

from minitransformer.gradcheck import CheckError
from minitransformer.gradcheck.learner import check_file

CUBE = """
import numpy as np
def cube_backward(dy, x):
    return {factor} * x ** 2 * dy
def cube(x):
    return x ** 3, x
def cube_inputs(rng):
    return {inputs}
"""


@pytest.fixture
def file(tmp_path):
    def write(text=CUBE, factor=3, inputs="rng.standard_normal((2, 3)),"):
        path = tmp_path / "a:b" / "my_cube.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text.format(factor=factor, inputs=inputs))
        return path

    return write


@pytest.mark.parametrize("inputs", ["({},)", "{}", "[{}]"])
def test_a_right_pair_is_right_its_inputs_in_a_tuple_alone_or_in_a_list(inputs, file):
    assert check_file(f"{file(inputs=inputs.format('rng.standard_normal(5)'))}:cube").right


def test_a_wrong_pair_is_wrong(file):
    report = check_file(f"{file(factor=6)}:cube")
    assert not report.right
    assert "2 times too large: a factor of ½ is missing, or one of 2 is too many" in str(report)


def test_another_seed_gives_other_inputs(file):
    path = file()
    errors = {check_file(f"{path}:cube", seed).tensors[0].analytic for seed in (0, 1)}
    assert len(errors) == 2


@pytest.mark.parametrize(
    ("text", "place"),
    [("x = 1\ny = x / 0\n", "(my_cube.py, line 2)"), ("x = 1\ny = = x\n", "(my_cube.py, line 2)")],
    ids=["fails", "no Python"],
)
def test_a_file_that_cannot_be_imported_is_told_with_the_line(text, place, file):
    with pytest.raises(CheckError) as caught:
        check_file(f"{file(text)}:cube")
    assert str(caught.value).endswith(place)


def test_the_file_may_import_its_neighbours(file):
    (file().parent / "exponent_of_my_cube.py").write_text("THREE = 3")
    text = CUBE.replace("import numpy as np", "from exponent_of_my_cube import THREE")
    before = list(sys.path)
    assert check_file(f"{file(text)}:cube").right
    assert sys.path == before


@pytest.mark.parametrize(("text", "name", "message"), [
    (CUBE, "square", "defines no function square$"),
    (CUBE, "cub", "defines no function cub; did you mean cube[?]$"),
    (CUBE.replace("cube_backward", "back"), "cube", "no function cube_backward; write one: "),
    (CUBE.replace("cube_inputs", "inputs"), "cube", "no function cube_inputs; write one: "),
    (CUBE + CUBE.replace("cube", "cub").replace("cub_inputs", "x"), "cub", "cub_inputs; write"),
    (CUBE.replace("return {inputs}", "x = np.ones(2); return x[5]"), "cube",
     r"cube_inputs raised IndexError: .* \(my_cube.py, line 8\)$"),
    (CUBE.replace("return {inputs}", "{inputs}"), "cube", "None: is its `return` missing"),
    (CUBE.replace("return {inputs}", "return dict(x=1)"), "cube", "dict: return a tuple"),
    ("import sys; sys.exit(0)", "cube", "importing .* raised SystemExit"),
    ("import a_module_that_is_not_there", "cube", "importing .* raised ModuleNotFoundError"),
])  # fmt: skip
def test_what_is_missing_in_the_file_is_said(file, text, name, message):
    with pytest.raises(CheckError, match=message):
        check_file(f"{file(text)}:{name}")


@pytest.mark.parametrize(("shape", "said"), [
    ((2, 3), "there x is (2, 3), factors is (3,)"),
    ((2, 3, 4), "there x is (2, 3, 4), factors is (3, 4); x.T reverses all axes, "
     "swapaxes(-1, -2) exchanges the last two"),
])  # fmt: skip
def test_where_shapes_do_not_fit_they_are_said_and_what_transposes_too_much(shape, said, file):
    text = CUBE.replace("x ** 3", "(x.T @ factors).sum()")
    text = text.replace("return {factor}", "factors = x\n    return {factor}")
    text = text.replace("def cube(x):", "def cube(x):\n    factors = x[0]")
    with pytest.raises(CheckError) as caught:
        check_file(f"{file(text, inputs=f'rng.standard_normal({shape}),')}:cube")
    assert str(caught.value).endswith(f"(my_cube.py, line 8); {said}")


def test_a_missing_file_a_folder_and_one_that_is_not_python_are_said(tmp_path):
    with pytest.raises(CheckError, match="there is no file"):
        check_file(f"{tmp_path / 'nothing.py'}:cube")
    (tmp_path / "cube.txt").write_text("")
    with pytest.raises(CheckError, match="no Python file"):
        check_file(f"{tmp_path / 'cube.txt'}:cube")
    (tmp_path / "cube.py").mkdir()
    with pytest.raises(CheckError, match=r"cube\.py cannot be read"):
        check_file(f"{tmp_path / 'cube.py'}:cube")
