// In the place of CuPy's header of this name, which wants CUDA's own: the package has no complex
// numbers.

#pragma once

template <typename T>
class complex;
