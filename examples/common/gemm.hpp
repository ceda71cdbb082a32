// The one seam to the matrix library: C = alpha A B + beta C on row-major views.
#pragma once
#include <optional>
#include <string>

namespace trainer {

/// A row-major view: `stride` elements from one row to the next. A transposed view reads the same memory the
/// other way round; `rows` and `columns` are what the reader sees.
template <class T>
struct Matrix {
  T* data;
  int rows, columns, stride;
  bool transposed = false;

  Matrix(T* first, int row_count, int column_count, int row_stride)
      : data(first), rows(row_count), columns(column_count), stride(row_stride) {}
  Matrix(T* first, int row_count, int column_count) : Matrix(first, row_count, column_count, column_count) {}
  operator Matrix<const T>() const {
    Matrix<const T> view(data, rows, columns, stride);
    view.transposed = transposed;
    return view;
  }
  Matrix transpose() const {
    Matrix view(data, columns, rows, stride);
    view.transposed = !transposed;
    return view;
  }
};

/// C = alpha A B + beta C; with beta = 0, C is only written. C is not transposed.
template <class T>
using Gemm = void (*)(T alpha, Matrix<const T> a, Matrix<const T> b, T beta, Matrix<T> c);

/// OpenBLAS on the calling thread, or null where the library is not there.
///
/// It is loaded at run time, because it chooses its kernels while loading and takes those of 2004 on a
/// processor newer than itself, four times slower than it could: unless OPENBLAS_CORETYPE is set already,
/// this names the newest kernels that the processor can run. Call it before the process has other threads (it
/// may write the environment).
template <class T>
Gemm<T> gemm_openblas();

/// Our own: blocked so that a panel of B stays in cache. The reference, and what is left where OpenBLAS is
/// wrong.
template <class T>
void gemm_reference(T alpha, Matrix<const T> a, Matrix<const T> b, T beta, Matrix<T> c);

/// The largest difference, relative to the products summed, between `candidate` and a plain triple loop over
/// sizes that reach a matrix library's inner kernels, their edges and every mix of transposes.
template <class T>
double gemm_error(Gemm<T> candidate);

/// What to multiply with: `preferred`, or the reference kernel and a warning where that is missing or
/// computes wrongly on this processor.
template <class T>
struct GemmChoice {
  Gemm<T> gemm;
  std::optional<std::string> warning;
};
template <class T>
GemmChoice<T> choose_gemm(Gemm<T> preferred = gemm_openblas<T>());

}  // namespace trainer
