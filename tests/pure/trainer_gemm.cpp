#include <doctest/doctest.h>

#include <limits>

#include "gemm.hpp"
#include "tests/skip.hpp"

using namespace trainer;

namespace {

// Each does one thing wrong.
void forgets_beta(float alpha, Matrix<const float> a, Matrix<const float> b, float, Matrix<float> c) {
  gemm_reference(alpha, a, b, 0.0f, c);
}
void forgets_alpha(float, Matrix<const float> a, Matrix<const float> b, float beta, Matrix<float> c) {
  gemm_reference(1.0f, a, b, beta, c);
}
void writes_past_the_row(float alpha, Matrix<const float> a, Matrix<const float> b, float beta,
                         Matrix<float> c) {
  gemm_reference(alpha, a, b, beta, c);
  c.data[c.columns] = 0;
}
void drops_the_last_product(float alpha, Matrix<const float> a, Matrix<const float> b, float beta,
                            Matrix<float> c) {
  if (a.columns > 128) {
    a.columns--;
    b.rows--;
  }
  gemm_reference(alpha, a, b, beta, c);
}
void not_a_number(float alpha, Matrix<const float> a, Matrix<const float> b, float beta, Matrix<float> c) {
  gemm_reference(alpha, a, b, beta, c);
  if (c.rows == 127) c.data[0] = std::numeric_limits<float>::quiet_NaN();
}

}  // namespace

TEST_CASE("gemm: the reference agrees with a triple loop over sizes and transposes") {
  CHECK(gemm_error(gemm_reference<float>) < 1e-6);
  CHECK(gemm_error(gemm_reference<double>) < 1e-14);
}

TEST_CASE("gemm: OpenBLAS agrees as well") {
  if (!gemm_openblas<float>()) SKIP_TEST("OpenBLAS is not installed");
  CHECK(gemm_error(gemm_openblas<float>()) < 1e-6);
  CHECK(gemm_error(gemm_openblas<double>()) < 1e-14);
}

TEST_CASE("gemm: the self-check tells every wrong kernel") {
  for (Gemm<float> wrong :
       {forgets_beta, forgets_alpha, writes_past_the_row, drops_the_last_product, not_a_number})
    CHECK(gemm_error(wrong) > 1e-3);
}

TEST_CASE("gemm: a wrong or missing library is replaced by the reference, with a warning") {
  CHECK((choose_gemm<float>(forgets_beta).gemm == gemm_reference<float>));
  CHECK(choose_gemm<float>(forgets_beta).warning->find("wrongly") != std::string::npos);
  CHECK((choose_gemm<double>(nullptr).gemm == gemm_reference<double>));
  CHECK(choose_gemm<double>(nullptr).warning->find("not installed") != std::string::npos);
  CHECK(!choose_gemm<float>(gemm_reference<float>).warning);
}

TEST_CASE("gemm: beta = 0 only writes, whatever was there") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float a[] = {1, 2}, b[] = {3, 4};
  float c[] = {nan};
  gemm_reference(1.0f, Matrix<const float>(a, 1, 2), Matrix<const float>(b, 2, 1), 0.0f,
                 Matrix<float>(c, 1, 1));
  CHECK(c[0] == 11);
}
