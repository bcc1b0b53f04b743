#include "tasks/style/frozen_features.hpp"

#include <gpunn/error.hpp>

#include <map>
#include <string>
#include <variant>

#include "graph/expressions.hpp"
#include "tasks/style/losses.hpp"

namespace gpunn::tasks {

using graph::Expressions;
using graph::Graph;
using graph::ValueId;

namespace {

constexpr int64_t kColours = 3;

// Grey images as the network sees them.
ValueId in_colours(Expressions& e, ValueId images) {
  Shape shape = e.shape(images);
  shape.at(1) = kColours;
  return e.expand(images, shape);
}

// The mean over the layers.
ValueId content_loss(Expressions& e, const std::vector<std::string>& layers,
                     const std::map<std::string, ValueId>& found, const std::map<std::string, ValueId>& wanted) {
  ValueId sum = e.constant(0, {e.shape(found.at(layers.front())).at(0)});
  for (const std::string& layer : layers) sum = e.add(sum, mean_square(e, found.at(layer), wanted.at(layer)));
  return e.scaled(sum, 1 / static_cast<double>(layers.size()));
}

// Of a row for each style, [styles, C, C], that of each image.
ValueId of_rows(Expressions& e, ValueId grams, int64_t rows) {
  const Shape shape = e.shape(grams);
  const int64_t styles = shape.at(0);
  if (rows <= styles) return e.slice(grams, 0, 0, rows);
  if (rows % styles != 0) {
    throw Error("a batch of " + std::to_string(rows) + " rows is not a multiple of the " + std::to_string(styles) +
                    " styles of loss.styles; change data.batch_size",
                ExitCode::usage);
  }
  const ValueId one = e.view(grams, {1, styles, shape[1], shape[2]});
  return e.view(e.expand(one, {rows / styles, styles, shape[1], shape[2]}), {rows, shape[1], shape[2]});
}

}  // namespace

std::string style_constant(const std::string& layer) { return "style." + layer; }

bool compares_features(const LossConfig& loss) {
  return std::holds_alternative<Perceptual>(loss.kind) || std::holds_alternative<StyleLoss>(loss.kind);
}

ValueId add_perceptual_loss(Graph& g, const Perceptual& loss, const FrozenFeatures& frozen, ValueId images,
                            ValueId targets) {
  Expressions e(g, "loss");
  const ValueId error = e.sub(images, targets);
  const ValueId pixels = e.mean(e.maximum(error, e.scaled(error, -1)), e.all(error) & ~1U, false);
  nn::FrozenLayers layers(g, frozen.network);
  const ValueId content = content_loss(e, frozen.content, layers.look_at(in_colours(e, images), frozen.content),
                                       layers.look_at(in_colours(e, targets), frozen.content));
  return e.add(e.scaled(pixels, loss.pixel_weight), e.scaled(content, loss.content_weight));
}

ValueId add_style_loss(Graph& g, const StyleLoss& loss, const FrozenFeatures& frozen, ValueId images,
                       ValueId contents) {
  Expressions e(g, "loss");
  nn::FrozenLayers layers(g, frozen.network);
  std::vector<std::string> compared = frozen.content;
  for (const nn::Constant& style : frozen.styles) compared.push_back(style.name.substr(style_constant("").size()));
  const std::map<std::string, ValueId> painted = layers.look_at(in_colours(e, images), compared);
  ValueId sum = e.scaled(total_variation(e, images), loss.variation_weight);
  sum = e.add(
      sum, e.scaled(content_loss(e, frozen.content, painted, layers.look_at(in_colours(e, contents), frozen.content)),
                    loss.content_weight));
  const double weight = loss.style_weight > 0 ? loss.style_weight : frozen.style_weight;
  for (const nn::Constant& style : frozen.styles) {
    const std::string layer = style.name.substr(style_constant("").size());
    const ValueId grams = g.add_value(style.name, {DType::f32, style.shape}, graph::Storage::data);
    const ValueId gram = gram_matrix(e, painted.at(layer));
    sum = e.add(sum, e.scaled(mean_square(e, gram, of_rows(e, grams, e.shape(gram)[0])), weight));
  }
  return sum;
}

}  // namespace gpunn::tasks
