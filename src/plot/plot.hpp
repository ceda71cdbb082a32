// Curves as an SVG picture: axes with round ticks, a grid, a legend. Not part of the library; the trainer and
// the benchmarks draw with it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace plot {

struct Point {
  double x, y;
};

struct Series {
  std::string label, colour;  // label: empty keeps it out of the legend; colour: as SVG writes it
  std::vector<Point> points;
  double width = 2;
  bool dashed = false;
};

/// log2 labels its ticks in K, M and G of 1024.
enum class Scale : uint8_t { linear, log10, log2 };

struct Axis {
  std::string label;
  Scale scale = Scale::linear;
};

struct Plot {
  std::string title;
  Axis x, y;
  std::vector<Series> series;
};

/// The picture, 800 by 480. Points that are not finite, or not positive on a logarithmic axis, are left out.
std::string to_svg(const Plot& plot);

/// Distinguishable line colours.
inline constexpr const char* colours[] = {"#1f6fb4", "#d9541e", "#2b8a3e", "#7b3fa0", "#8a6d1b", "#12808a"};

}  // namespace plot
