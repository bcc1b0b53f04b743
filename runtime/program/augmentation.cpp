#include "program/augmentation.hpp"

#include <gpunn/ops.h>

#include <algorithm>

#include "data/variation/sample_variation.hpp"
#include "fields/kind.hpp"
#include "graph/expressions.hpp"
#include "tasks/classification.hpp"

namespace gpunn::training {

using graph::Attributes;
using graph::Graph;
using graph::ValueId;

namespace {

// Each kind has a sequence of random numbers of its own, so that one more leaves the others' as they were.
constexpr uint64_t kShiftStream = uint64_t{1} << 34;
constexpr uint64_t kAffineStream = kShiftStream + 1;
constexpr uint64_t kColorStream = kShiftStream + 2;
constexpr uint64_t kEraseStream = kShiftStream + 3;
constexpr uint64_t kZoomStream = kShiftStream + 6;  // behind those of mixup.cpp

// A crop out of a padded image and a shift are one thing.
const std::vector<int64_t>& reach_of(const AugmentationConfig& a) { return a.crop.empty() ? a.translate : a.crop; }

bool shifts(const AugmentationConfig& a) {
  const std::vector<int64_t>& reach = reach_of(a);
  return a.flip > 0 || std::ranges::any_of(reach, [](int64_t pixels) { return pixels > 0; });
}

bool places(const AugmentationConfig& a) {
  const bool scales = !a.scale.empty() && (a.scale[0] != 1 || a.scale[1] != 1);
  return a.rotate > 0 || a.translate_share > 0 || scales;
}

bool moves(const AugmentationConfig& a) { return shifts(a) || places(a) || !a.zoom.empty(); }

bool colours(const AugmentationConfig& a) { return a.brightness > 0 || a.contrast > 0 || a.saturation > 0; }

bool erases(const AugmentationConfig& a) { return !a.erase.empty() && a.erase_share > 0; }

// An op that moves pictures, its counterpart for maps of integers, and their attributes.
struct Movement {
  const char* name = nullptr;
  gpunn_op of_images = GPUNN_OP_COPY, of_maps = GPUNN_OP_COPY;
  Attributes attributes = {};
  bool has_border = false;  // the ops take what lies outside the picture
};

Movement shift_of(const Experiment& experiment) {
  gpunn_random_shift_attrs attrs{};
  const std::vector<int64_t>& reach = reach_of(experiment.augmentation);
  for (std::size_t i = 0; i < reach.size(); ++i) attrs.reach[i] = static_cast<int32_t>(reach[i]);
  attrs.flip = static_cast<float>(experiment.augmentation.flip);
  attrs.seed = experiment.seed;
  attrs.stream = kShiftStream;
  return {"augment.shift", GPUNN_OP_RANDOM_SHIFT, GPUNN_OP_RANDOM_SHIFT_LABELS, Attributes::of(attrs), true};
}

Movement affine_of(const Experiment& experiment) {
  const AugmentationConfig& a = experiment.augmentation;
  gpunn_random_affine_attrs attrs{};
  attrs.rotate = static_cast<float>(a.rotate);
  attrs.translate[0] = attrs.translate[1] = static_cast<float>(a.translate_share);
  attrs.scale_low = a.scale.empty() ? 1.0F : static_cast<float>(a.scale[0]);
  attrs.scale_high = a.scale.empty() ? 1.0F : static_cast<float>(a.scale[1]);
  attrs.seed = experiment.seed;
  attrs.stream = kAffineStream;
  return {"augment.affine", GPUNN_OP_RANDOM_AFFINE, GPUNN_OP_RANDOM_AFFINE_LABELS, Attributes::of(attrs), true};
}

Movement zoom_of(const Experiment& experiment) {
  gpunn_random_zoom_attrs attrs{};
  attrs.low = static_cast<float>(experiment.augmentation.zoom[0]);
  attrs.high = static_cast<float>(experiment.augmentation.zoom[1]);
  attrs.seed = experiment.seed;
  attrs.stream = kZoomStream;
  return {"augment.zoom", GPUNN_OP_RANDOM_ZOOM, GPUNN_OP_RANDOM_ZOOM_LABELS, Attributes::of(attrs), false};
}

ValueId add_integer(Graph& g, const std::string& name, int64_t number) {
  gpunn_fill_attrs fill{};
  fill.dtype = GPUNN_I32;
  fill.value = static_cast<double>(number);
  return g.add1(GPUNN_OP_FILL, name, Attributes::of(fill), {});
}

// Maps of the picture move with it.
void add_movement(Graph& g, const Movement& movement, const SplitType& split, Batch& batch, ValueId draw) {
  std::vector<ValueId> inputs = {batch.x, draw};
  if (movement.has_border) inputs.push_back(batch.shift);
  batch.x = g.add1(movement.of_images, movement.name, movement.attributes, std::move(inputs));
  for (const DeviceField& field : split.fields) {
    if (!field.lies_in_picture) continue;
    const std::string name = std::string(movement.name) + "." + field.name;
    ValueId& map = batch.fields.at(field.name);
    std::vector<ValueId> of_map = {map, draw};
    if (movement.has_border) of_map.push_back(add_integer(g, name + ".border", field.border));
    map = g.add1(movement.of_maps, name, movement.attributes, std::move(of_map));
  }
}

ValueId add_color(Graph& g, const Experiment& experiment, const SplitType& split, const Batch& batch, ValueId step) {
  const AugmentationConfig& a = experiment.augmentation;
  gpunn_random_color_attrs attrs{};
  attrs.brightness = static_cast<float>(a.brightness);
  attrs.contrast = static_cast<float>(a.contrast);
  attrs.saturation = static_cast<float>(a.saturation);
  attrs.white = split.samples.dtype == DType::u8 ? 255.0F : 1.0F;
  attrs.seed = experiment.seed;
  attrs.stream = kColorStream;
  return g.add1(GPUNN_OP_RANDOM_COLOR, "augment.color", Attributes::of(attrs),
                {batch.x, step, batch.scale, batch.shift});
}

ValueId add_erase(Graph& g, const Experiment& experiment, const Batch& batch, ValueId step) {
  const AugmentationConfig& a = experiment.augmentation;
  gpunn_random_erase_attrs attrs{};
  for (std::size_t i = 0; i < a.erase.size(); ++i) attrs.size[i] = static_cast<int32_t>(a.erase[i]);
  attrs.p = static_cast<float>(a.erase_share);
  attrs.seed = experiment.seed;
  attrs.stream = kEraseStream;
  return g.add1(GPUNN_OP_RANDOM_ERASE, "augment.erase", Attributes::of(attrs), {batch.x, step, batch.shift});
}

// A number of the step, from a table, as the learning rate is.
ValueId add_number_of_step(Graph& g, const ProgramContext& c, const char* table, ValueId step) {
  const TensorType type{DType::f32, {std::max<int64_t>(c.total_steps, 1)}};
  const ValueId numbers = g.add_value(table, type, graph::Storage::state);
  return g.add1(GPUNN_OP_TABLE_LOAD, "augment.share", {}, {numbers, step});
}

// Rows are mixed with those from the other end of the batch: in a shuffled batch as good as any.
void add_mixup(Graph& g, const ProgramContext& c, Batch& batch, ValueId step) {
  const ValueId share = add_number_of_step(g, c, variable::kMixupShares, step);
  const ValueId targets =
      batch.has(kTargetField) ? batch.fields.at(kTargetField) : tasks::add_class_targets(g, c.outputs, batch.label());
  const bool cuts = c.experiment.augmentation.cutmix > 0;
  const ValueId share_of_targets = cuts ? add_number_of_step(g, c, variable::kMixTargets, step) : share;
  const ValueId whole = batch.x;
  batch.x = g.add1(GPUNN_OP_MIX_ROWS, "augment.mixup", {}, {whole, share, batch.count});
  batch.fields[kTargetField] =
      g.add1(GPUNN_OP_MIX_ROWS, "augment.targets", {}, {targets, share_of_targets, batch.count});
  if (!cuts) return;
  graph::Expressions e(g, "augment.cutmix");
  const ValueId others = g.add1(GPUNN_OP_MIX_ROWS, "augment.others", {}, {whole, e.constant(0), batch.count});
  const Shape& shape = g.value(whole).type.shape;
  const ValueId rows = g.add_value(variable::kMixRows, {DType::f32, {1, 1, shape[2], 1}}, graph::Storage::data);
  const ValueId columns = g.add_value(variable::kMixColumns, {DType::f32, {1, 1, 1, shape[3]}}, graph::Storage::data);
  const auto between = [&](const char* first, ValueId place, const char* end) {
    return e.mul(e.less_equal(add_number_of_step(g, c, first, step), place),
                 e.less(place, add_number_of_step(g, c, end, step)));
  };
  const ValueId cut = e.mul(between(variable::kMixTop, rows, variable::kMixBottom),
                            between(variable::kMixLeft, columns, variable::kMixRight));
  batch.x = e.select(cut, others, batch.x);
}

std::string size_text(int64_t rows, int64_t columns) { return std::to_string(rows) + " x " + std::to_string(columns); }

// What is done on the host is done to images of bytes, before they go to the device.
void require_variable(const Experiment& experiment, const Dataset& dataset) {
  const AugmentationConfig& a = experiment.augmentation;
  if (!data::SampleVariation::is_wanted(a)) return;
  const std::string key = !a.resized_crop.empty() ? "resized_crop"
                          : a.trivial_augment     ? "trivial_augment"
                                                  : "rand_augment";
  const auto fail = [&](const std::string& message) {
    throw ConfigError({{a.where, "augmentation." + key + message}});
  };
  const TensorType& samples = dataset.train.samples;
  if (dataset.batches != nullptr) {
    fail(" is for images with a class, and the batches of '" + dataset.name +
         "' are varied by keys of `data`; leave it out");
  }
  if (samples.shape.size() != 4 || samples.dtype != DType::u8 || (samples.shape[1] != 1 && samples.shape[1] != 3)) {
    fail(" is for images of bytes, u8[rows, C, H, W] with 1 or 3 channels; the samples of '" + dataset.name + "' are " +
         to_string(samples) + ": leave it out");
  }
  if (experiment.data.residency == Residency::device) {
    fail(" varies images on the host, and data.residency: device has them on the device before; leave one of them out");
  }
}

// Targets that lie in the picture move with it if they are maps of integers. Batches of a source come varied.
void require_movable(const Experiment& experiment, const Dataset& dataset) {
  const AugmentationConfig& a = experiment.augmentation;
  const bool mixes = a.mixup > 0 || a.cutmix > 0;
  for (const Field& field : dataset.fields) {
    if (field.role != Role::target || !fields::kind_of(field).lies_in_picture()) continue;
    const bool is_map = field.type.shape.size() == 2 && field.type.dtype != DType::f32;
    const std::string has = "the samples of '" + dataset.name + "' have " + fields::kind_of(field).amount(field);
    if (mixes || data::SampleVariation::is_wanted(a)) {
      throw ConfigError({{a.where, std::string("augmentation.") +
                                       (a.mixup > 0    ? "mixup"
                                        : a.cutmix > 0 ? "cutmix"
                                                       : "resized_crop, rand_augment or trivial_augment") +
                                       " is for samples with a class, and " + has + "; leave it out"}});
    }
    if (moves(a) && !is_map && dataset.batches == nullptr) {
      throw ConfigError({{a.where, "augmentation moves images, and " + has +
                                       ", which would not move with them; give colours and erase only"}});
    }
  }
}

}  // namespace

void require_augmentable(const Experiment& experiment, const Dataset& dataset) {
  const AugmentationConfig& a = experiment.augmentation;
  const Shape& shape = dataset.train.samples.shape;
  const auto fail = [&](const std::string& message) { throw ConfigError({{a.where, message}}); };
  if ((a.mixup > 0 || a.cutmix > 0) && dataset.fields.of(Role::input).size() > 1) {
    fail("augmentation." + std::string(a.mixup > 0 ? "mixup" : "cutmix") + " mixes samples of one input; those of '" +
         dataset.name + "' have several: leave it out");
  }
  if (a.cutmix > 0 && shape.size() != 4) {
    fail("augmentation.cutmix is for images, [rows, C, H, W]; the samples of '" + dataset.name + "' are " +
         to_string(dataset.train.samples) + ": leave it out, or give mixup");
  }
  require_variable(experiment, dataset);
  require_movable(experiment, dataset);
  if (!moves(a) && !colours(a) && !erases(a)) return;
  if (shape.size() != 4) {
    fail("augmentation is for images, [rows, C, H, W]; the samples of '" + dataset.name + "' are " +
         to_string(dataset.train.samples) + ": leave the section out");
  }
  const std::vector<int64_t>& reach = reach_of(a);
  if (!reach.empty() && (reach[0] >= shape[2] || reach[1] >= shape[3])) {
    fail("augmentation." + std::string(a.crop.empty() ? "translate" : "crop") + ": " + size_text(reach[0], reach[1]) +
         " pixels would leave nothing of the images of '" + dataset.name + "', which have " +
         size_text(shape[2], shape[3]) + "; give less");
  }
}

void add_augmentation(Graph& g, const ProgramContext& c, const SplitType& split, Batch& batch, ValueId step,
                      ValueId draw) {
  const AugmentationConfig& a = c.experiment.augmentation;
  if (!a.zoom.empty()) add_movement(g, zoom_of(c.experiment), split, batch, draw);
  if (shifts(a)) add_movement(g, shift_of(c.experiment), split, batch, draw);
  if (places(a)) add_movement(g, affine_of(c.experiment), split, batch, draw);
  if (colours(a)) batch.x = add_color(g, c.experiment, split, batch, draw);
  if (erases(a)) batch.x = add_erase(g, c.experiment, batch, draw);
  if (a.mixup > 0 || a.cutmix > 0) add_mixup(g, c, batch, step);
}

}  // namespace gpunn::training
