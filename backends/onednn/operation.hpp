// A primitive of oneDNN as a kernel: its operands lie in memory as gpunn has them, and are copied to and from what the
// primitive prefers.
#pragma once

#include <gpunn/kernel.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <oneapi/dnnl/dnnl.hpp>

#include "common/requirements.hpp"

namespace gpunn::onednn {

using backends::OpArgs;
using backends::OpDesc;
using backends::require;

// The processor.
const dnnl::engine& engine();

// oneDNN computes with so many threads wherever this thread calls it, as long as this lives. OpenMP keeps the number by
// calling thread, and the calls of one device may come from several.
class ThreadsInUse {
 public:
  explicit ThreadsInUse(int threads);
  ~ThreadsInUse();
  ThreadsInUse(const ThreadsInUse&) = delete;
  ThreadsInUse& operator=(const ThreadsInUse&) = delete;

 private:
  int before_;
};

// Refuses dtypes that oneDNN does not have on processors.
dnnl::memory::data_type data_type_of(const gpunn_tensor& tensor);

// What may be rounded, and that scratch memory is the caller's.
dnnl::primitive_attr attributes_of(const OpDesc& desc);

// The description of a primitive, with its arguments in the order that versions 2 and 3 share. `hint` is nothing, or
// the description of the forward primitive.
template <class Primitive, class... Arguments, class... Hint>
typename Primitive::primitive_desc describe(const dnnl::primitive_attr& attributes,
                                            const std::tuple<Arguments...>& arguments, const Hint&... hint) {
  return std::apply(
      [&](const auto&... argument) {
#if DNNL_VERSION_MAJOR >= 3
        return typename Primitive::primitive_desc(engine(), argument..., hint..., attributes);
#else
        return typename Primitive::primitive_desc(typename Primitive::desc(argument...), attributes, engine(), hint...);
#endif
      },
      arguments);
}

// What all primitives have of their description: the same object of oneDNN's, without the class of its operation.
inline dnnl::primitive_desc_base common_part(const dnnl::primitive_desc_base& description) { return description; }

// One tensor of the op.
struct Operand {
  int argument = 0;       // DNNL_ARG_...
  bool output = false;    // of the op; else an input
  std::size_t index = 0;  // among the op's inputs or outputs
  dnnl::memory::desc given;
  dnnl::memory::desc wanted;
};

// A primitive that was chosen, before it is compiled.
struct Plan {
  dnnl::primitive_desc_base description;
  std::vector<Operand> operands;
  // ReLU on output 0, by a loop of our own: oneDNN's makes 0 of NaN.
  bool relu = false;

  // Of the copies, one after the other, and behind them of the primitive.
  uint64_t workspace_bytes() const;
};

// Serves `op` by what plan_of(desc) gives; that may throw Refusal or dnnl::error, which makes the base serve it.
void serve(plugin::Device& device, int32_t op, int threads, const std::function<Plan(const OpDesc&)>& plan_of,
           bool channels_last);

}  // namespace gpunn::onednn
