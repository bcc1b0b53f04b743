#include "convolution/quantized_convolution.hpp"

#include <algorithm>
#include <cstring>

#include "threads/grain.hpp"
#include "threads/parallel.hpp"

namespace gpunn::cpu {
namespace {

constexpr int64_t kInt8Columns = Int8Tile::kColumns;
constexpr int kInt8FilterZero = 128;
// A task's rows stay in the second-level cache beside a panel of the filter.
constexpr int64_t kInt8RowsBytes = 256 * 1024;
constexpr int64_t kMostBlockPixels = 144;
constexpr int64_t kFewestBlockPixels = 24;
constexpr int64_t kInt8Tasks = 16;
constexpr int64_t kLine = 64;

}  // namespace

QuantizedConvolution::QuantizedConvolution(const ConvolutionShape& shape, const gpunn_quantized_conv2d_attrs& attrs,
                                           int threads, const Int8Products& products)
    : products_(products),
      kernels_(&GPUNN_SELECT_ISA(int8_kernels)),
      shape_(shape),
      attrs_(attrs),
      threads_(threads),
      source_(images_of(shape, false)),
      targets_(target_classes(shape, true).front()),
      outputs_(shape.group_outputs),
      pixels_(shape.batch * shape.rows.outputs * shape.columns.outputs),
      terms_(shape.rows.taps * shape.columns.taps * shape.group_inputs),
      padded_terms_(round_up(terms_, products.depth)),
      row_stride_(round_up(padded_terms_, kLine) + kLine),
      in_place_(sees_itself(shape) && terms_ == padded_terms_),
      depthwise_(shape.groups > 1 && shape.group_inputs == 1 && shape.group_outputs == 1),
      panels_(divide_up(shape.group_outputs, kInt8Columns)) {
  block_pixels_ = even_block(pixels_, std::clamp(kInt8RowsBytes / row_stride_, kFewestBlockPixels, kMostBlockPixels));
  if (block_pixels_ > products_.rows) block_pixels_ = round_up(block_pixels_, products_.rows);
  blocks_ = divide_up(pixels_, block_pixels_);
  while (blocks_ * splits_ * shape.groups < kInt8Tasks && 2 * splits_ <= panels_) splits_ *= 2;
}

FilterLayout QuantizedConvolution::filter_layout() const {
  if (depthwise_) return {"int8 depthwise", {shape_.groups, shape_.rows.taps, shape_.columns.taps}};
  return {products_.group == 1 ? "int8" : "int8 in groups",
          {shape_.groups, shape_.group_inputs, outputs_, shape_.rows.taps, shape_.columns.taps, products_.depth}};
}

std::size_t QuantizedConvolution::filter_bytes() const {
  return static_cast<std::size_t>(shape_.groups * panels_ * padded_terms_ * kInt8Columns);
}

std::size_t QuantizedConvolution::packed_bytes() const {
  if (depthwise_) return depthwise_bytes();
  return filter_bytes() + static_cast<std::size_t>(shape_.groups * panels_ * kInt8Columns) * sizeof(int32_t);
}

int64_t QuantizedConvolution::padded_channels() const {
  return depthwise_ ? round_up(shape_.groups, kInt8Columns) : shape_.groups * panels_ * kInt8Columns;
}

// [group][panel][term / g][channel of the panel][term % g], then the sums [group][panel][channel].
void QuantizedConvolution::pack_filter(const uint8_t* filter, void* packed) const {
  if (depthwise_) return pack_depthwise(filter, static_cast<int16_t*>(packed));
  auto* const numbers = static_cast<int8_t*>(packed);
  auto* const sums = reinterpret_cast<int32_t*>(numbers + filter_bytes());
  const int64_t group = products_.group;
  parallel_for(threads_, shape_.groups * panels_, [&](int64_t task, int) {
    const int64_t first = task % panels_ * kInt8Columns;
    const uint8_t* from = filter + (task / panels_ * outputs_ + first) * terms_;
    int8_t* to = numbers + task * padded_terms_ * kInt8Columns;
    const int64_t count = std::min(kInt8Columns, outputs_ - first);
    std::memset(to, 0, static_cast<std::size_t>(padded_terms_ * kInt8Columns));
    for (int64_t j = 0; j < kInt8Columns; ++j) {
      int32_t sum = 0;
      for (int64_t p = 0; j < count && p < terms_; ++p) {
        const int weight = from[j * terms_ + p] - kInt8FilterZero;
        to[(p / group * kInt8Columns + j) * group + p % group] = static_cast<int8_t>(weight);
        sum += weight;
      }
      sums[task * kInt8Columns + j] = sum;
    }
  });
}

std::size_t QuantizedConvolution::scratch_bytes() const {
  const auto channels = static_cast<std::size_t>(padded_channels());
  if (depthwise_) {
    const auto sums = static_cast<std::size_t>(threads_) * channels * sizeof(int32_t);
    return channels * 2 * sizeof(float) + sums + kLine;
  }
  const std::size_t rows = in_place_ ? 0 : static_cast<std::size_t>(threads_ * block_pixels_ * row_stride_);
  return channels * (2 * sizeof(float) + sizeof(int32_t)) + rows + kLine;
}

QuantizedConvolution::Channels QuantizedConvolution::scale_channels(const Operands& operands,
                                                                    std::byte* scratch) const {
  const int64_t padded = padded_channels();
  auto* const factor = reinterpret_cast<float*>(scratch);
  float* const offset = factor + padded;
  if (depthwise_) {
    for (int64_t i = 0; i < padded; ++i) {
      const bool there = i < shape_.groups;
      factor[i] = there ? attrs_.x_scale * operands.scale[i] / attrs_.y_scale : 0;
      offset[i] = there && operands.bias != nullptr ? operands.bias[i] / attrs_.y_scale : 0;
    }
    return {factor, offset, nullptr};
  }
  auto* const first = reinterpret_cast<int32_t*>(offset + padded);
  const auto* const sums =
      reinterpret_cast<const int32_t*>(static_cast<const std::byte*>(operands.packed) + filter_bytes());
  for (int64_t i = 0; i < padded; ++i) {
    const int64_t group = i / (panels_ * kInt8Columns), in_group = i % (panels_ * kInt8Columns);
    const bool there = in_group < outputs_;
    const int64_t channel = group * outputs_ + in_group;
    factor[i] = there ? attrs_.x_scale * operands.scale[channel] / attrs_.y_scale : 0;
    offset[i] = there && operands.bias != nullptr ? operands.bias[channel] / attrs_.y_scale : 0;
    first[i] = -attrs_.x_zero_point * sums[i];
  }
  return {factor, offset, first};
}

Int8Store QuantizedConvolution::store_of(const Operands& operands) const {
  const bool relu = attrs_.activation == GPUNN_ACTIVATION_RELU, adds = operands.residual != nullptr;
  return {.factor = nullptr,
          .offset = nullptr,
          .residual_factor = adds ? attrs_.residual_scale / attrs_.y_scale : 0,
          .zero_residual = adds ? static_cast<float>(attrs_.residual_zero_point) : 0,
          .zero_point = static_cast<float>(attrs_.y_zero_point),
          .low = relu ? static_cast<float>(attrs_.y_zero_point) : 0};
}

void QuantizedConvolution::multiply(const Operands& operands, const Channels& channels, int64_t task,
                                    std::byte* rows) const {
  const int64_t group = task / (blocks_ * splits_);
  const int64_t begin = task / splits_ % blocks_ * block_pixels_;
  const int64_t count = std::min(block_pixels_, pixels_ - begin);
  const uint8_t* a = operands.x + begin * source_.all_channels + group * source_.channels;
  int64_t stride = source_.all_channels;
  if (!in_place_) {
    auto* const copied = reinterpret_cast<uint8_t*>(rows);
    copy_rows(source_, targets_, operands.x, group * source_.channels, source_.channels, {0, targets_.taps()}, begin,
              count, copied, row_stride_, static_cast<uint8_t>(attrs_.x_zero_point));
    a = copied;
    stride = row_stride_;
  }
  Int8Store how = store_of(operands);
  alignas(kLine) int32_t sums[Int8Tile::kMostRows * Int8Tile::kColumns];
  Int8Tile tile{};
  tile.k = padded_terms_;
  tile.a_stride = stride;
  tile.sums = sums;
  const int64_t in_split = divide_up(panels_, splits_);
  const int64_t first_panel = task % splits_ * in_split;
  const int64_t all_outputs = shape_.groups * outputs_;
  if (products_.begin != nullptr) products_.begin();
  for (int64_t panel = first_panel; panel < std::min(first_panel + in_split, panels_); ++panel) {
    const int64_t padded = (group * panels_ + panel) * kInt8Columns;
    const int64_t channel = group * outputs_ + panel * kInt8Columns;
    const int columns = static_cast<int>(std::min(kInt8Columns, outputs_ - panel * kInt8Columns));
    tile.b = static_cast<const int8_t*>(operands.packed) + (group * panels_ + panel) * padded_terms_ * kInt8Columns;
    tile.first = channels.first + padded;
    how.factor = channels.factor + padded;
    how.offset = channels.offset + padded;
    for (int64_t i = 0; i < count; i += products_.rows) {
      tile.rows = static_cast<int>(std::min<int64_t>(products_.rows, count - i));
      tile.a = a + i * stride;
      products_.multiply(tile);
      for (int r = 0; r < tile.rows; ++r) {
        const int64_t at = (begin + i + r) * all_outputs + channel;
        if (operands.numbers != nullptr) {
          kernels_->scale(sums + r * Int8Tile::kColumns, how.factor, how.offset, operands.numbers + at, columns);
          continue;
        }
        kernels_->store(sums + r * Int8Tile::kColumns, how,
                        operands.residual == nullptr ? nullptr : operands.residual + at, operands.y + at, columns);
      }
    }
  }
  if (products_.end != nullptr) products_.end();
}

void QuantizedConvolution::run(const Operands& operands, void* scratch) const {
  auto* const memory = static_cast<std::byte*>(scratch);
  const Channels channels = scale_channels(operands, memory);
  const auto padded = static_cast<std::size_t>(padded_channels());
  if (depthwise_) return run_depthwise(operands, channels, reinterpret_cast<int32_t*>(memory) + 2 * padded);
  std::byte* const rows = memory + round_up(static_cast<int64_t>(padded * 3 * sizeof(float)), kLine);
  parallel_for(threads_, shape_.groups * blocks_ * splits_, [&](int64_t task, int thread) {
    multiply(operands, channels, task, rows + thread * block_pixels_ * row_stride_);
  });
}

}  // namespace gpunn::cpu
