// A backend that is right but for one fault: it wraps another plugin and spoils one thing that it does. Which plugin
// and which fault the environment says: GPUNN_MUTANT_OF, the path of a plugin without a base; GPUNN_MUTATION, the name
// of a fault; GPUNN_MUTANT_OP, the number of the op that it concerns, 0 for all.
#pragma once

#include <gpunn/kernel.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace mutations {

// Of the wrapped plugin.
const gpunn_plugin& real();
bool on_host();

// A kernel of the wrapped plugin with what faults go by.
struct Kernel {
  gpunn_kernel* handle = nullptr;
  int32_t op = 0;
  int64_t number = 0;                          // counts the kernels that were created, from 0
  int64_t calls = 0;                           // so far, with the present one
  uint64_t workspace = 0;                      // that the wrapped plugin wants
  std::vector<std::byte> attrs{};              // of the op, with zeros behind them
  std::vector<std::vector<std::byte>> kept{};  // a fault's own
};

// One call of op_enqueue.
struct Call {
  Kernel& kernel;
  gpunn_stream* stream;
  gpunn_op_args args;

  const gpunn_tensor& in(std::size_t i) const { return *args.inputs[i]; }
  const gpunn_tensor& out(std::size_t i) const { return *args.outputs[i]; }
  // The wrapped plugin does its work.
  gpunn_status run(gpunn_error* error);
  // On the stream, where the memory is.
  void fill(void* to, uint8_t value, uint64_t bytes) const;
};

int64_t elements(const gpunn_tensor& tensor);
uint64_t size_of(const gpunn_tensor& tensor);  // bytes of an element
void* element(const gpunn_tensor& tensor, int64_t index);
// Of any input: its longest dimension, the last dimension of the first, its rank.
int64_t longest(const Call& call);

struct Fault {
  std::string name;
  // In place of op_enqueue; empty: as it is.
  std::function<gpunn_status(Call& call, gpunn_error* error)> enqueue = {};
  // Changes the answer of op_query. `asked`: the wrapped plugin serves it.
  std::function<void(const gpunn_op_desc& desc, gpunn_op_support& support)> query = {};
  // Before a kernel is created, and when one has been freed.
  std::function<void(const gpunn_op_desc& desc)> create = {};
  std::function<void()> freed = {};
  // Changes the table once.
  std::function<void(gpunn_plugin& table)> table = {};
  bool host_only = false;  // reads or writes tensors directly
};

// Kernels that were created, and that are alive.
int64_t created();
int64_t alive();

// By what they spoil, a file a kind.
std::vector<Fault> element_faults();   // elements that are wrong, at some sizes or all
std::vector<Fault> value_faults();     // NaN, infinities, large and small numbers, labels
std::vector<Fault> memory_faults();    // bytes beyond a tensor, leaks, allocations
std::vector<Fault> state_faults();     // what a kernel remembers
std::vector<Fault> contract_faults();  // answers and structs
std::vector<Fault> kernel_faults();    // of loops written out
std::vector<Fault> conduct_faults();   // crashes, hangs, modes of the processor

}  // namespace mutations
