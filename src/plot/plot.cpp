#include "plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace plot {
namespace {

constexpr double width = 800, height = 480, left = 72, right = 24, top = 48, bottom = 60;

struct Tick {
  double value;
  std::string label;
};

// The smallest of 1, 2, 5, 10, 20 ... (or a tenth, a hundredth ... of them) that is at least `least`.
double round_step(double least) {
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

std::string binary_label(double value) {
  for (const char* unit : {"", "K", "M", "G"}) {
    if (value < 1024) return fmt::format("{:g}{}", value, unit);
    value /= 1024;
  }
  return fmt::format("{:g}T", value);
}

// One axis: from values to a position between 0 and 1, and its ticks. Both ends are ticks.
class Ruler {
 public:
  Ruler(Scale scale, double low, double high) : scale_(scale) {
    double first = transform(low), last = transform(high);
    if (last - first < 1e-12) first -= 0.5, last += 0.5;
    step_ = round_step((last - first) / 9);
    if (scale != Scale::linear) step_ = std::max(1.0, std::round(step_));
    first_ = std::floor(first / step_ + 1e-9) * step_;
    last_ = std::ceil(last / step_ - 1e-9) * step_;
  }

  bool can_show(double value) const { return std::isfinite(value) && (scale_ == Scale::linear || value > 0); }
  double place(double value) const { return (transform(value) - first_) / (last_ - first_); }

  std::vector<Tick> ticks() const {
    std::vector<Tick> all;
    for (int i = 0; i <= int(std::round((last_ - first_) / step_)); i++) {
      const double at = first_ + i * step_;
      switch (scale_) {
        case Scale::linear:
          all.push_back({at, fmt::format("{:.6g}", std::abs(at) < step_ * 1e-9 ? 0 : at)});
          break;
        case Scale::log10:
          all.push_back({std::pow(10, at), fmt::format("{:g}", std::pow(10, at))});
          break;
        case Scale::log2:
          all.push_back({std::exp2(at), binary_label(std::exp2(at))});
          break;
      }
    }
    return all;
  }

 private:
  double transform(double value) const {
    switch (scale_) {
      case Scale::linear:
        return value;
      case Scale::log10:
        return std::log10(value);
      case Scale::log2:
        return std::log2(value);
    }
    return value;
  }
  Scale scale_;
  double first_, last_, step_;
};

Ruler ruler_over(const Plot& plot, const Axis& axis, double Point::*coordinate) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const Series& series : plot.series)
    for (const Point& point : series.points) {
      const double value = point.*coordinate;
      if (!std::isfinite(value) || (axis.scale != Scale::linear && value <= 0)) continue;
      low = std::min(low, value);
      high = std::max(high, value);
    }
  if (low > high) low = high = 1;
  return Ruler(axis.scale, low, high);
}

std::string escape(const std::string& text) {
  std::string safe;
  for (const char each : text) {
    if (each == '&')
      safe += "&amp;";
    else if (each == '<')
      safe += "&lt;";
    else if (each == '>')
      safe += "&gt;";
    else if (each == '"')
      safe += "&quot;";
    else
      safe += each;
  }
  return safe;
}

double pixel_x(const Ruler& ruler, double value) {
  return left + ruler.place(value) * (width - left - right);
}
double pixel_y(const Ruler& ruler, double value) {
  return height - bottom - ruler.place(value) * (height - top - bottom);
}

std::string text(double x, double y, const char* anchor, int size, const std::string& words,
                 const char* more = "") {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" font-size=\"{}\"{}>{}</text>\n", x,
                     y, anchor, size, more, escape(words));
}

std::string axes(const Plot& plot, const Ruler& x, const Ruler& y) {
  std::string svg;
  for (const Tick& tick : x.ticks()) {
    const double at = pixel_x(x, tick.value);
    svg += fmt::format("<path d=\"M{:.1f} {}V{}\" stroke=\"#e4e4e4\"/>\n", at, top, height - bottom);
    svg += text(at, height - bottom + 20, "middle", 13, tick.label);
  }
  for (const Tick& tick : y.ticks()) {
    const double at = pixel_y(y, tick.value);
    svg += fmt::format("<path d=\"M{} {:.1f}H{}\" stroke=\"#e4e4e4\"/>\n", left, at, width - right);
    svg += text(left - 10, at + 4.5, "end", 13, tick.label);
  }
  svg += fmt::format("<path d=\"M{} {}V{}H{}\" stroke=\"#555\" fill=\"none\"/>\n", left, top, height - bottom,
                     width - right);
  svg += text((left + width - right) / 2, height - 16, "middle", 14, plot.x.label);
  const double middle = (top + height - bottom) / 2;
  svg += text(20, middle, "middle", 14, plot.y.label,
              fmt::format(" transform=\"rotate(-90 20 {})\"", middle).c_str());
  svg += text(left, 28, "start", 17, plot.title, " font-weight=\"bold\"");
  return svg;
}

std::string curve(const Series& series, const Ruler& x, const Ruler& y) {
  std::string path;
  for (const Point& point : series.points)
    if (x.can_show(point.x) && y.can_show(point.y))
      path +=
          fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", pixel_x(x, point.x), pixel_y(y, point.y));
  return fmt::format(
      "<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{:g}\" stroke-linejoin=\"round\"{}/>\n",
      path, series.colour, series.width, series.dashed ? " stroke-dasharray=\"7 5\"" : "");
}

// In the upper right corner, on a sheet of its own so that curves behind it do not disturb.
std::string legend(const Plot& plot) {
  std::string lines;
  size_t longest = 0;
  int count = 0;
  for (const Series& series : plot.series) longest = std::max(longest, series.label.size());
  const double sheet = 62 + 7.3 * double(longest), x = width - right - 12 - sheet;
  for (const Series& series : plot.series) {
    if (series.label.empty()) continue;
    const double y = top + 28 + 22 * count++;
    lines += fmt::format("<path d=\"M{:.1f} {}h30\" stroke=\"{}\" stroke-width=\"{:g}\"{}/>\n", x + 12,
                         y - 4.5, series.colour, std::max(2.0, series.width),
                         series.dashed ? " stroke-dasharray=\"7 5\"" : "");
    lines += text(x + 52, y, "start", 13, series.label);
  }
  if (count == 0) return {};
  return fmt::format(
             "<rect x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\" rx=\"4\" fill=\"white\" "
             "fill-opacity=\"0.9\" "
             "stroke=\"#ccc\"/>\n",
             x, top + 8, sheet, 22 * count + 10) +
         lines;
}

}  // namespace

std::string to_svg(const Plot& plot) {
  const Ruler x = ruler_over(plot, plot.x, &Point::x), y = ruler_over(plot, plot.y, &Point::y);
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"sans-serif\" fill=\"#222\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      width, height);
  svg += axes(plot, x, y);
  for (const Series& series : plot.series) svg += curve(series, x, y);
  return svg + legend(plot) + "</svg>\n";
}

}  // namespace plot
