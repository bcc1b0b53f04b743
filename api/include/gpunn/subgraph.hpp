// C++ wrappers over subgraph.h: a backend whose device fuses subgraphs.
//
//   class MyDevice : public Device {
//     SubgraphSupport query_subgraph(const ProgramDesc& desc, std::size_t first, std::size_t limit);
//     std::unique_ptr<Subgraph> create_subgraph(const ProgramDesc& desc, std::size_t first, std::size_t count);
//   };
//   const void* MyBackend::extension(const char* name) {
//     return std::strcmp(name, GPUNN_EXTENSION_SUBGRAPH) == 0 ? subgraph_extension<MyDevice>() : nullptr;
//   }
#pragma once

#include <gpunn/plugin.hpp>
#include <gpunn/subgraph.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gpunn::plugin {

// A step program as query_subgraph and create_subgraph see it: a view that is valid during the call.
class ProgramDesc {
 public:
  explicit ProgramDesc(const gpunn_program_desc& desc) : desc_(desc) {}
  std::size_t ops() const { return desc_.n_ops; }
  std::size_t values() const { return desc_.n_values; }
  OpDesc op(std::size_t i) const { return OpDesc(*desc_.ops[i]->desc); }
  std::span<const int32_t> inputs(std::size_t op) const {
    return {desc_.ops[op]->inputs, desc_.ops[op]->desc->n_inputs};
  }
  std::span<const int32_t> outputs(std::size_t op) const {
    return {desc_.ops[op]->outputs, desc_.ops[op]->desc->n_outputs};
  }
  const gpunn_program_value& value(int32_t id) const { return *desc_.values[id]; }
  const gpunn_tensor& tensor(int32_t id) const { return *value(id).tensor; }
  int32_t precision() const { return desc_.precision; }
  bool require_deterministic() const { return (desc_.flags & GPUNN_OP_REQUIRE_DETERMINISTIC) != 0; }

  // Whether a value has content before a subgraph that begins with op `first`.
  bool comes_in(int32_t id, std::size_t first) const { return value(id).first_write < static_cast<int64_t>(first); }
  // Whether the value is needed after a subgraph that ends before op `end`.
  bool needed_after(int32_t id, std::size_t end) const { return value(id).last_read >= static_cast<int64_t>(end); }

  // Whether two values share bytes.
  bool overlap(int32_t a, int32_t b) const {
    const gpunn_program_value& left = value(a);
    const gpunn_program_value& right = value(b);
    return left.root == right.root && left.offset < right.offset + bytes(*right.tensor) &&
           right.offset < left.offset + bytes(*left.tensor);
  }
  // Whether one of the two ops writes bytes that the other one reads or writes, so that their order matters.
  bool conflict(std::size_t a, std::size_t b) const {
    return any_overlap(outputs(a), inputs(b)) || any_overlap(outputs(a), outputs(b)) ||
           any_overlap(inputs(a), outputs(b));
  }

  const gpunn_program_desc& raw() const { return desc_; }

 private:
  static int64_t bytes(const gpunn_tensor& tensor) {
    return element_count(tensor) * static_cast<int64_t>(ops::dtype_bytes(tensor.dtype));
  }
  bool any_overlap(std::span<const int32_t> a, std::span<const int32_t> b) const {
    return std::any_of(a.begin(), a.end(), [&](int32_t x) {
      return std::any_of(b.begin(), b.end(), [&](int32_t y) { return overlap(x, y); });
    });
  }

  const gpunn_program_desc& desc_;
};

// The order of ops that makes the ops of a subgraph neighbours.
struct Gathered {
  std::vector<std::size_t> before;  // ops between them that depend on none of them, in their order
  std::vector<std::size_t> behind;  // the other ops between them
  // If the subgraph is impossible: an op that depends on it and on which it depends.
  std::size_t between = kNowhere;

  static constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);
};

// `ops` are in rising order.
inline Gathered gather_ops(const ProgramDesc& desc, std::span<const uint32_t> ops) {
  Gathered result;
  if (ops.empty() || ops.back() - ops.front() + 1 == ops.size()) return result;
  std::vector<std::size_t> chosen;
  for (std::size_t op = ops.front(); op <= ops.back(); ++op) {
    const auto conflicts = [&](std::size_t other) { return desc.conflict(other, op); };
    const auto behind = std::find_if(result.behind.begin(), result.behind.end(), conflicts);
    if (op == ops[chosen.size()]) {
      chosen.push_back(op);
      if (behind == result.behind.end()) continue;
      result.between = *behind;
      return result;
    }
    const bool depends = behind != result.behind.end() || std::any_of(chosen.begin(), chosen.end(), conflicts);
    (depends ? result.behind : result.before).push_back(op);
  }
  return result;
}

// The answer of query_subgraph.
struct SubgraphSupport {
  std::size_t ops = 0;  // 0: none
  uint64_t workspace_bytes = 0;
  uint32_t flags = GPUNN_OP_DETERMINISTIC | GPUNN_OP_CAPTURABLE;
  std::string name;
  std::string reason;
  std::vector<uint32_t> chosen = {};  // which ops; empty: as many from `first` on
  double saved_seconds = 0;           // 0: not told

  static SubgraphSupport yes(std::size_t ops, std::string name, uint64_t workspace_bytes = 0) {
    return {.ops = ops, .workspace_bytes = workspace_bytes, .name = std::move(name), .reason = {}};
  }
  static SubgraphSupport yes(std::vector<uint32_t> chosen, std::string name, uint64_t workspace_bytes = 0) {
    SubgraphSupport support = yes(chosen.size(), std::move(name), workspace_bytes);
    support.chosen = std::move(chosen);
    return support;
  }
  static SubgraphSupport no(std::string reason = {}) { return {.flags = 0, .name = {}, .reason = std::move(reason)}; }
};

// The tensors of one enqueue, by value id.
class SubgraphArgs {
 public:
  explicit SubgraphArgs(const gpunn_subgraph_args& args) : args_(args) {}
  bool has(int32_t id) const { return args_.values[id] != nullptr; }
  const gpunn_tensor& tensor(int32_t id) const { return *args_.values[id]; }
  // nullptr if the value has no memory.
  template <class T>
  T* data(int32_t id) const {
    return has(id) ? static_cast<T*>(args_.values[id]->data) : nullptr;
  }
  template <class T>
  T* workspace() const {
    return static_cast<T*>(args_.workspace);
  }

  const gpunn_subgraph_args& raw() const { return args_; }

 private:
  const gpunn_subgraph_args& args_;
};

// A fused subgraph.
class Subgraph {
 public:
  virtual ~Subgraph() = default;
  virtual void enqueue(Stream& stream, const SubgraphArgs& args) = 0;
};

// A subgraph from a callable (Stream&, const SubgraphArgs&).
template <class F>
std::unique_ptr<Subgraph> make_subgraph(F run) {
  class Lambda final : public Subgraph {
   public:
    explicit Lambda(F run) : run_(std::move(run)) {}
    void enqueue(Stream& stream, const SubgraphArgs& args) override { run_(stream, args); }

   private:
    F run_;
  };
  return std::make_unique<Lambda>(std::move(run));
}

namespace detail {

template <class D>
struct __attribute__((visibility("hidden"))) SubgraphTable {
  static D& device_of(gpunn_device* handle) { return static_cast<D&>(device(handle)); }

  static gpunn_status query(gpunn_device* handle, const gpunn_program_desc* desc, uint32_t first, uint32_t limit,
                            gpunn_subgraph_support* out, gpunn_error* error) noexcept {
    return guard(error, [&] {
      const auto known = read_struct<gpunn_program_desc>(desc);
      const SubgraphSupport subgraph = device_of(handle).query_subgraph(ProgramDesc(known), first, limit);
      gpunn_subgraph_support value{};
      value.ops = out->ops;
      std::copy_n(subgraph.chosen.begin(), std::min<std::size_t>(subgraph.chosen.size(), limit), value.ops);
      value.n_ops = static_cast<uint32_t>(subgraph.ops);
      value.workspace_bytes = subgraph.workspace_bytes;
      value.flags = subgraph.flags;
      value.saved_seconds = subgraph.saved_seconds;
      copy_text(value.name, sizeof(value.name), subgraph.name);
      copy_text(value.reason, sizeof(value.reason), subgraph.reason);
      write_struct(value, out);
    });
  }
  static gpunn_status create(gpunn_device* handle, const gpunn_program_desc* desc, uint32_t first, uint32_t n_ops,
                             gpunn_subgraph** out, gpunn_error* error) noexcept {
    return guard(error, [&] {
      const auto known = read_struct<gpunn_program_desc>(desc);
      *out = reinterpret_cast<gpunn_subgraph*>(
          device_of(handle).create_subgraph(ProgramDesc(known), first, n_ops).release());
    });
  }
  static gpunn_status enqueue(gpunn_subgraph* handle, gpunn_stream* on, const gpunn_subgraph_args* args,
                              gpunn_error* error) noexcept {
    return guard(error, [&] { reinterpret_cast<Subgraph*>(handle)->enqueue(stream(on), SubgraphArgs(*args)); });
  }
  static void destroy(gpunn_subgraph* handle) noexcept { delete reinterpret_cast<Subgraph*>(handle); }
};

}  // namespace detail

// Backend::extension(GPUNN_EXTENSION_SUBGRAPH) returns this if every device that the backend opens is a D.
template <class D>
[[gnu::visibility("hidden")]] const gpunn_subgraph_extension* subgraph_extension() noexcept {
  using T = detail::SubgraphTable<D>;
  static const gpunn_subgraph_extension table = {.struct_size = sizeof(gpunn_subgraph_extension),
                                                 .reserved = 0,
                                                 .query = T::query,
                                                 .create = T::create,
                                                 .enqueue = T::enqueue,
                                                 .destroy = T::destroy};
  return &table;
}

}  // namespace gpunn::plugin
