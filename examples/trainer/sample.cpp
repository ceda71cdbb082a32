#include "sample.hpp"

#include <algorithm>

#include "random.hpp"
#include "vector_math.hpp"

namespace trainer {
namespace {

// The symbol at `point` (0 to 1) of the distribution's running sum.
template <class T>
int draw(std::vector<T> logits, double temperature, double point) {
  for (T& each : logits) each = T(double(each) / temperature);
  softmax(logits.data(), int(logits.size()));
  for (size_t symbol = 0; symbol < logits.size(); symbol++)
    if ((point -= double(logits[symbol])) < 0) return int(symbol);
  return int(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

}  // namespace

template <class T>
std::string sample(Model<T>& model, std::span<const T> parameters, const std::string& prompt, size_t count,
                   double temperature, uint64_t seed) {
  std::string text = prompt;
  const int symbols = model.shape().symbols;
  for (uint64_t i = 0; i < count; i++) {
    const size_t seen = std::min(text.size(), size_t(model.shape().context));
    Batch batch{1, {}, std::vector<int32_t>(seen, no_target)};
    for (const char each : text.substr(text.size() - seen)) batch.tokens.push_back(uint8_t(each));
    const auto last = model.logits(parameters, batch).last(size_t(symbols));
    const double point = random_uniform({seed, stream::sample, i});
    text.push_back(char(draw(std::vector<T>(last.begin(), last.end()), temperature, point)));
  }
  return text.substr(prompt.size());
}

template std::string sample(Model<float>&, std::span<const float>, const std::string&, size_t, double,
                            uint64_t);

}  // namespace trainer
