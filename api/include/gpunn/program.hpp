// C++ comfort over program.h: a backend whose device claims runs of ops.
//
//   class MyDevice : public Device {
//     ProgramClaim claim(const ProgramDesc& desc, std::size_t first, std::size_t limit);
//     std::unique_ptr<Program> create_program(const ProgramDesc& desc, std::size_t first, std::size_t count);
//   };
//   const void* MyBackend::extension(const char* name) {
//     return std::strcmp(name, GPUNN_EXTENSION_PROGRAM) == 0 ? program_extension<MyDevice>() : nullptr;
//   }
#pragma once

#include <gpunn/plugin.hpp>
#include <gpunn/program.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace gpunn::plugin {

// A step program, as claim and create_program see it. A view: valid during that call.
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

  // Whether a run that begins with op `first` finds something in the value.
  bool comes_in(int32_t id, std::size_t first) const { return value(id).first_write < static_cast<int64_t>(first); }
  // Whether somebody reads the value after a run that ends before op `end`.
  bool needed_after(int32_t id, std::size_t end) const { return value(id).last_read >= static_cast<int64_t>(end); }

  const gpunn_program_desc& raw() const { return desc_; }

 private:
  const gpunn_program_desc& desc_;
};

// The answer of a device's claim.
struct ProgramClaim {
  std::size_t ops = 0;  // 0: none
  uint64_t workspace_bytes = 0;
  uint32_t flags = GPUNN_OP_DETERMINISTIC | GPUNN_OP_CAPTURABLE;
  std::string name;
  std::string reason;

  static ProgramClaim yes(std::size_t ops, std::string name, uint64_t workspace_bytes = 0) {
    return {.ops = ops, .workspace_bytes = workspace_bytes, .name = std::move(name), .reason = {}};
  }
  static ProgramClaim no(std::string reason = {}) { return {.flags = 0, .name = {}, .reason = std::move(reason)}; }
};

// The tensors of one enqueue, by value id.
class ProgramArgs {
 public:
  explicit ProgramArgs(const gpunn_program_args& args) : args_(args) {}
  bool has(int32_t id) const { return args_.values[id] != nullptr; }
  const gpunn_tensor& tensor(int32_t id) const { return *args_.values[id]; }
  // nullptr where the value has no memory.
  template <class T>
  T* data(int32_t id) const {
    return has(id) ? static_cast<T*>(args_.values[id]->data) : nullptr;
  }
  template <class T>
  T* workspace() const {
    return static_cast<T*>(args_.workspace);
  }

 private:
  const gpunn_program_args& args_;
};

// A run of ops, claimed.
class Program {
 public:
  virtual ~Program() = default;
  virtual void enqueue(Stream& stream, const ProgramArgs& args) = 0;
};

// A program from a callable (Stream&, const ProgramArgs&).
template <class F>
std::unique_ptr<Program> make_program(F run) {
  class Lambda final : public Program {
   public:
    explicit Lambda(F run) : run_(std::move(run)) {}
    void enqueue(Stream& stream, const ProgramArgs& args) override { run_(stream, args); }

   private:
    F run_;
  };
  return std::make_unique<Lambda>(std::move(run));
}

namespace detail {

template <class D>
struct __attribute__((visibility("hidden"))) ProgramTable {
  static D& device_of(gpunn_device* handle) { return static_cast<D&>(device(handle)); }

  static gpunn_status query(gpunn_device* handle, const gpunn_program_desc* desc, uint32_t first, uint32_t limit,
                            gpunn_program_claim* out, gpunn_error* error) noexcept {
    return guard(error, [&] {
      const auto known = read_struct<gpunn_program_desc>(desc);
      const ProgramClaim claim = device_of(handle).claim(ProgramDesc(known), first, limit);
      gpunn_program_claim value{};
      value.n_ops = static_cast<uint32_t>(claim.ops);
      value.workspace_bytes = claim.workspace_bytes;
      value.flags = claim.flags;
      copy_text(value.name, sizeof(value.name), claim.name);
      copy_text(value.reason, sizeof(value.reason), claim.reason);
      write_struct(value, out);
    });
  }
  static gpunn_status create(gpunn_device* handle, const gpunn_program_desc* desc, uint32_t first, uint32_t n_ops,
                             gpunn_program** out, gpunn_error* error) noexcept {
    return guard(error, [&] {
      const auto known = read_struct<gpunn_program_desc>(desc);
      *out = reinterpret_cast<gpunn_program*>(
          device_of(handle).create_program(ProgramDesc(known), first, n_ops).release());
    });
  }
  static gpunn_status enqueue(gpunn_program* handle, gpunn_stream* on, const gpunn_program_args* args,
                              gpunn_error* error) noexcept {
    return guard(error, [&] { reinterpret_cast<Program*>(handle)->enqueue(stream(on), ProgramArgs(*args)); });
  }
  static void destroy(gpunn_program* handle) noexcept { delete reinterpret_cast<Program*>(handle); }
};

}  // namespace detail

// What Backend::extension(GPUNN_EXTENSION_PROGRAM) returns where every device that the backend opens is a D.
template <class D>
[[gnu::visibility("hidden")]] const gpunn_program_extension* program_extension() noexcept {
  using T = detail::ProgramTable<D>;
  static const gpunn_program_extension table = {.struct_size = sizeof(gpunn_program_extension),
                                                .reserved = 0,
                                                .query = T::query,
                                                .create = T::create,
                                                .enqueue = T::enqueue,
                                                .destroy = T::destroy};
  return &table;
}

}  // namespace gpunn::plugin
