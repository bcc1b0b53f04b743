// The struct of an op's attributes as a type of its id: OpAttrs<GPUNN_OP_SCALE> is gpunn_scale_attrs.
#pragma once

#include <gpunn/ops.h>

#include <cstdint>

namespace gpunn::plugin {
namespace detail {

template <int32_t op>
struct AttrsOf;

#define GPUNN_OP(name, id, attributes, signature, summary) \
  template <>                                              \
  struct AttrsOf<GPUNN_OP_##name> {                        \
    using type = attributes;                               \
  };
#include <gpunn/op_list.inc>
#undef GPUNN_OP

}  // namespace detail

template <int32_t op>
using OpAttrs = typename detail::AttrsOf<op>::type;

}  // namespace gpunn::plugin
