#include "convolution_graph.hpp"

#include <array>
#include <utility>

#include "device.hpp"

namespace gpunn::cudnn {
namespace {

using backends::ConvolutionPass;
using backends::ConvolutionShape;
using Extents = std::array<int64_t, 4>;

// Intermediate values of a fused graph, which are never stored.
enum VirtualId : int64_t { kProduct = 11, kSum = 12, kBiased = 13 };

constexpr int64_t kByteAlignment = 16;  // the ABI gives more; no engine asks for more
constexpr cudnnDataType_t kFloat = CUDNN_DATA_FLOAT;

cudnnDataType_t data_type(int32_t dtype) {
  switch (dtype) {
    case GPUNN_BF16:
      return CUDNN_DATA_BFLOAT16;
    case GPUNN_F16:
      return CUDNN_DATA_HALF;
    default:
      return CUDNN_DATA_FLOAT;
  }
}

Descriptor make_tensor(int64_t id, const Extents& extents, const Storage& storage = {}) {
  constexpr std::array<std::size_t, 4> kPacked{3, 2, 1, 0};
  constexpr std::array<std::size_t, 4> kChannelsLast{1, 3, 2, 0};
  Extents strides{};
  int64_t stride = 1;
  for (const std::size_t i : storage.channels_last ? kChannelsLast : kPacked) {
    strides[i] = stride;
    stride *= extents[i];
  }
  const bool is_virtual = id >= kProduct;
  Descriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, data_type(storage.dtype));
  tensor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, extents);
  tensor.set(CUDNN_ATTR_TENSOR_STRIDES, strides);
  tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id);
  tensor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kByteAlignment);
  if (is_virtual) tensor.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, is_virtual);
  tensor.finalize();
  return tensor;
}

Descriptor make_convolution(const ConvolutionShape& shape) {
  const std::array<int64_t, 2> pads{shape.rows.pad, shape.columns.pad};
  const std::array<int64_t, 2> strides{shape.rows.stride, shape.columns.stride};
  const std::array<int64_t, 2> dilations{shape.rows.dilation, shape.columns.dilation};
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  Descriptor convolution(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  convolution.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, int64_t{2});
  convolution.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, kFloat);
  convolution.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, mode);
  convolution.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, pads);
  convolution.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, pads);
  convolution.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, strides);
  convolution.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, dilations);
  convolution.finalize();
  return convolution;
}

// The attribute names of an operation of one pass.
struct OperationNames {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t convolution, x, w, y, alpha, beta;
};

OperationNames names_of(ConvolutionPass pass) {
  switch (pass) {
    case ConvolutionPass::backward_data:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case ConvolutionPass::backward_filter:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
    case ConvolutionPass::forward:
      break;
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
}

Descriptor make_operation(const OperationNames& names, const Descriptor& convolution, const Descriptor& x,
                          const Descriptor& w, const Descriptor& y) {
  Descriptor operation(names.type);
  operation.set(names.convolution, convolution);
  operation.set(names.x, x);
  operation.set(names.w, w);
  operation.set(names.y, y);
  operation.set(names.alpha, CUDNN_TYPE_FLOAT, kOne);
  operation.set(names.beta, CUDNN_TYPE_FLOAT, kZero);
  operation.finalize();
  return operation;
}

Descriptor make_pointwise(cudnnPointwiseMode_t mode) {
  Descriptor pointwise(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  pointwise.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
  pointwise.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, kFloat);
  pointwise.finalize();
  return pointwise;
}

// y = mode(x) or, with b, mode(x, b).
Descriptor make_pointwise_operation(const Descriptor& pointwise, const Descriptor& x, const Descriptor* b,
                                    const Descriptor& y) {
  Descriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, pointwise);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
  if (b != nullptr) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *b);
  operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  operation.finalize();
  return operation;
}

}  // namespace

OperationGraph convolution_graph(const Target& target, ConvolutionPass pass, const ConvolutionShape& shape,
                                 Epilogue epilogue, const Storage& storage) {
  const int64_t inputs = shape.groups * shape.group_inputs;
  const int64_t outputs = shape.groups * shape.group_outputs;
  const Extents results{shape.batch, outputs, shape.rows.outputs, shape.columns.outputs};

  // cuDNN tells groups from the channels of x and w.
  Descriptor x = make_tensor(kImages, {shape.batch, inputs, shape.rows.inputs, shape.columns.inputs}, storage);
  Descriptor w = make_tensor(kFilters, {outputs, shape.group_inputs, shape.rows.taps, shape.columns.taps}, storage);
  Descriptor y = make_tensor(kResults, results, storage);
  Descriptor convolution = make_convolution(shape);

  std::vector<Descriptor> parts;
  std::vector<Descriptor> operations;
  if (epilogue == Epilogue::none) {
    operations.push_back(make_operation(names_of(pass), convolution, x, w, y));
  } else {
    const Storage intermediate{.dtype = GPUNN_F32, .channels_last = storage.channels_last};
    const bool residual = epilogue == Epilogue::bias_add || epilogue == Epilogue::bias_add_relu;
    const bool relu = epilogue == Epilogue::bias_relu || epilogue == Epilogue::bias_add_relu;
    Descriptor product = make_tensor(kProduct, results, intermediate);
    Descriptor add = make_pointwise(CUDNN_POINTWISE_ADD);
    operations.push_back(make_operation(names_of(pass), convolution, x, w, product));
    Descriptor sum = std::move(product);
    if (residual) {  // before the bias, as in cudnnConvolutionBiasActivationForward, whose engines these are
      Descriptor other = make_tensor(kResidual, results, storage);
      Descriptor both = make_tensor(kSum, results, intermediate);
      operations.push_back(make_pointwise_operation(add, sum, &other, both));
      parts.push_back(std::move(other));
      parts.push_back(std::exchange(sum, std::move(both)));
    }
    Descriptor bias = make_tensor(kBias, {1, outputs, 1, 1});
    if (relu) {
      Descriptor biased = make_tensor(kBiased, results, intermediate);
      Descriptor activation = make_pointwise(CUDNN_POINTWISE_RELU_FWD);
      operations.push_back(make_pointwise_operation(add, sum, &bias, biased));
      operations.push_back(make_pointwise_operation(activation, biased, nullptr, y));
      parts.push_back(std::move(biased));
      parts.push_back(std::move(activation));
    } else {
      operations.push_back(make_pointwise_operation(add, sum, &bias, y));
    }
    for (Descriptor* part : {&sum, &bias, &add}) parts.push_back(std::move(*part));
  }

  Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  if (target.handle != nullptr) graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, target.handle);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, std::span<const Descriptor>(operations));
  graph.finalize();

  for (Descriptor& operation : operations) parts.push_back(std::move(operation));
  for (Descriptor* part : {&x, &w, &y, &convolution}) parts.push_back(std::move(*part));
  return {std::move(parts), std::move(graph)};
}

}  // namespace gpunn::cudnn
