#include "gemm.hpp"

#include <cblas.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <vector>

#include "random.hpp"

namespace trainer {
namespace {

struct OpenBlas {
  decltype(&cblas_sgemm) sgemm = nullptr;
  decltype(&cblas_dgemm) dgemm = nullptr;
};

template <class Function>
Function* symbol(void* library, const char* name) {
  return reinterpret_cast<Function*>(::dlsym(library, name));
}

void name_kernels() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    ::setenv("OPENBLAS_CORETYPE", "SkylakeX", 0);
  else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    ::setenv("OPENBLAS_CORETYPE", "Haswell", 0);
#endif
}

OpenBlas load_openblas() {
  name_kernels();
  void* library = ::dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  if (!library) return {};
  // Ranks are the parallelism: threads of its own would only fight over the cores.
  if (auto* set_threads = symbol<void(int)>(library, "openblas_set_num_threads")) set_threads(1);
  return {symbol<decltype(cblas_sgemm)>(library, "cblas_sgemm"),
          symbol<decltype(cblas_dgemm)>(library, "cblas_dgemm")};
}

const OpenBlas& openblas() {
  static const OpenBlas library = load_openblas();
  return library;
}

template <class T>
CBLAS_TRANSPOSE order(const Matrix<T>& m) {
  return m.transposed ? CblasTrans : CblasNoTrans;
}

template <class T>
T at(const Matrix<const T>& m, int row, int column) {
  return m.transposed ? m.data[size_t(column) * m.stride + row] : m.data[size_t(row) * m.stride + column];
}

// A(row, k) B(k, column) summed over k in double, and the sum of magnitudes, which scales the rounding error.
template <class T>
std::pair<double, double> dot(const Matrix<const T>& a, const Matrix<const T>& b, int row, int column) {
  double sum = 0, magnitude = 0;
  for (int k = 0; k < a.columns; k++) {
    const double product = double(at(a, row, k)) * double(at(b, k, column));
    sum += product;
    magnitude += std::abs(product);
  }
  return {sum, magnitude};
}

template <class T>
std::vector<T> noise(size_t count, uint64_t stream) {
  std::vector<T> values(count);
  for (size_t i = 0; i < count; i++) values[i] = T(2 * random_uniform({42, stream, i}) - 1);
  return values;
}

struct Case {
  int m, n, k;
  bool transpose_a, transpose_b;
};

template <class T>
Matrix<const T> view(const std::vector<T>& values, int rows, int columns, int padding, bool transposed) {
  if (!transposed) return Matrix<const T>(values.data(), rows, columns, columns + padding);
  return Matrix<const T>(values.data(), columns, rows, rows + padding).transpose();
}

template <class T>
double error_of(Gemm<T> candidate, const Case& size) {
  constexpr int padding = 3;
  const T alpha = T(0.5), beta = T(-2);
  const size_t edge = size_t(std::max({size.m, size.n, size.k})) + padding;
  const auto a_values = noise<T>(edge * edge, 1), b_values = noise<T>(edge * edge, 2),
             before = noise<T>(edge * edge, 3);
  const auto a = view(a_values, size.m, size.k, padding, size.transpose_a);
  const auto b = view(b_values, size.k, size.n, padding, size.transpose_b);
  auto after = before;
  const Matrix<T> c(after.data(), size.m, size.n, size.n + padding);
  candidate(alpha, a, b, beta, c);

  double worst = 0;
  for (size_t i = 0; i < after.size(); i++) {
    const int row = int(i / size_t(c.stride)), column = int(i % size_t(c.stride));
    if (row >= size.m || column >= size.n) {  // beside the matrix nothing may change
      if (after[i] != before[i]) return std::numeric_limits<double>::infinity();
      continue;
    }
    const auto [sum, magnitude] = dot(a, b, row, column);
    const double expected = double(alpha) * sum + double(beta) * double(before[i]);
    const double scale = double(alpha) * magnitude + std::abs(double(beta) * double(before[i]));
    const double error = std::abs(double(after[i]) - expected) / scale;
    worst = std::isnan(error) ? std::numeric_limits<double>::infinity() : std::max(worst, error);
  }
  return worst;
}

// One row of C per pass over a panel of B; the loop over columns runs over contiguous memory.
template <class T>
void multiply_panel(T alpha, const Matrix<const T>& a, const T* panel, int first, int depth,
                    const Matrix<T>& c) {
  for (int row = 0; row < c.rows; row++) {
    T* out = c.data + size_t(row) * c.stride;
    for (int k = 0; k < depth; k++) {
      const T factor = alpha * at(a, row, first + k);
      const T* in = panel + size_t(k) * c.columns;
      for (int column = 0; column < c.columns; column++) out[column] += factor * in[column];
    }
  }
}

}  // namespace

template <>
Gemm<float> gemm_openblas() {
  if (!openblas().sgemm) return nullptr;
  return [](float alpha, Matrix<const float> a, Matrix<const float> b, float beta, Matrix<float> c) {
    openblas().sgemm(CblasRowMajor, order(a), order(b), c.rows, c.columns, a.columns, alpha, a.data, a.stride,
                     b.data, b.stride, beta, c.data, c.stride);
  };
}

template <>
Gemm<double> gemm_openblas() {
  if (!openblas().dgemm) return nullptr;
  return [](double alpha, Matrix<const double> a, Matrix<const double> b, double beta, Matrix<double> c) {
    openblas().dgemm(CblasRowMajor, order(a), order(b), c.rows, c.columns, a.columns, alpha, a.data, a.stride,
                     b.data, b.stride, beta, c.data, c.stride);
  };
}

template <class T>
void gemm_reference(T alpha, Matrix<const T> a, Matrix<const T> b, T beta, Matrix<T> c) {
  constexpr int block = 64;
  for (int row = 0; row < c.rows; row++) {
    T* out = c.data + size_t(row) * c.stride;
    for (int column = 0; column < c.columns; column++) out[column] = beta == T(0) ? T(0) : beta * out[column];
  }
  std::vector<T> panel(size_t(block) * c.columns);
  for (int first = 0; first < a.columns; first += block) {
    const int depth = std::min(block, a.columns - first);
    for (int k = 0; k < depth; k++)
      for (int column = 0; column < c.columns; column++)
        panel[size_t(k) * c.columns + column] = at(b, first + k, column);
    multiply_panel(alpha, a, panel.data(), first, depth, c);
  }
}

template <class T>
double gemm_error(Gemm<T> candidate) {
  constexpr std::array<std::array<int, 3>, 7> sizes{
      {{1, 1, 1}, {3, 5, 7}, {17, 1, 33}, {64, 192, 64}, {127, 129, 16}, {33, 255, 130}, {130, 64, 256}}};
  double worst = 0;
  for (const auto& [m, n, k] : sizes)
    for (int transposes = 0; transposes < 4; transposes++)
      worst = std::max(worst, error_of(candidate, {m, n, k, (transposes & 1) != 0, (transposes & 2) != 0}));
  return worst;
}

template <class T>
GemmChoice<T> choose_gemm(Gemm<T> preferred) {
  if (!preferred)
    return {gemm_reference<T>, "OpenBLAS is not installed; using the slower built-in matrix product"};
  const double error = gemm_error(preferred), bound = 64 * std::numeric_limits<T>::epsilon();
  if (error <= bound) return {preferred, std::nullopt};
  return {gemm_reference<T>,
          fmt::format("OpenBLAS computes wrongly on this processor (relative error {:.1e}); using the "
                      "slower built-in matrix product. OPENBLAS_CORETYPE=Haswell may help.",
                      error)};
}

template void gemm_reference(float, Matrix<const float>, Matrix<const float>, float, Matrix<float>);
template void gemm_reference(double, Matrix<const double>, Matrix<const double>, double, Matrix<double>);
template double gemm_error(Gemm<float>);
template double gemm_error(Gemm<double>);
template GemmChoice<float> choose_gemm(Gemm<float>);
template GemmChoice<double> choose_gemm(Gemm<double>);

}  // namespace trainer
