// What abi.h demands of answers: a yes to what the catalogue does not have is a lie, equal questions get equal answers,
// and structs of a host that is older or newer are read as far as they go.
#include <gpunn/op_shapes.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/abi/abi_checks.hpp"
#include "conformance/abi/question.hpp"
#include "conformance/abi/raw_kernel.hpp"
#include "conformance/case_runner.hpp"
#include "ops/case.hpp"
#include "ops/op.hpp"

namespace gpunn::conformance {

using ops::Case;

namespace {

bool is_declared(const gpunn_op_desc& desc) {
  try {
    ops::require_declared(plugin::OpDesc(desc));
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

// --- What the catalogue does not have ---

struct Spoiling {
  std::string what;
  std::function<void(Question&)> spoil;
};

void pack(gpunn_tensor& tensor) {
  int64_t stride = 1;
  for (int32_t d = tensor.rank; d-- > 0;) {
    tensor.stride[d] = stride;
    stride *= tensor.dim[d];
  }
}

// Every way in which one tensor may be other than declared.
std::vector<Spoiling> spoilings(const Question& question) {
  std::vector<Spoiling> result;
  const auto add = [&result](const std::string& what, std::function<void(Question&)> spoil) {
    result.push_back({what, std::move(spoil)});
  };
  for (const bool output : {false, true}) {
    const std::vector<gpunn_tensor>& tensors = output ? question.outputs : question.inputs;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const std::string which = (output ? "output " : "input ") + std::to_string(i);
      const auto change = [output, i](const std::function<void(gpunn_tensor&)>& of) {
        return [=](Question& q) { of((output ? q.outputs : q.inputs)[i]); };
      };
      for (const ops::Dtype& dtype : ops::kDtypes) {
        if (dtype.id == tensors[i].dtype) continue;
        add(which + " of " + std::string(dtype.name), change([id = dtype.id](gpunn_tensor& t) { t.dtype = id; }));
      }
      for (int32_t d = 0; d < tensors[i].rank; ++d) {
        add(which + " longer by one in dimension " + std::to_string(d), change([d](gpunn_tensor& t) {
              ++t.dim[d];
              pack(t);
            }));
      }
      if (tensors[i].rank < GPUNN_MAX_RANK) {
        add(which + " with one dimension more", change([](gpunn_tensor& t) {
              t.dim[t.rank++] = 2;
              pack(t);
            }));
      }
      if (tensors[i].rank > 0) {
        add(which + " with one dimension less", change([](gpunn_tensor& t) {
              --t.rank;
              pack(t);
            }));
      }
    }
    if (!tensors.empty()) {
      add(output ? "no last output" : "no last input",
          [output](Question& q) { (output ? q.outputs : q.inputs).pop_back(); });
      add(output ? "one output more" : "one input more", [output](Question& q) {
        std::vector<gpunn_tensor>& list = output ? q.outputs : q.inputs;
        list.push_back(list.back());
      });
    }
  }
  return result;
}

void check_refusals(const RawChain& chain, const graph::OpSignature& signature, const Note& note) {
  const Question asked = question_of(signature);
  for (const auto& [what, spoil] : spoilings(asked)) {
    Question question = asked;
    spoil(question);
    const RawDescription description = question.description();
    if (is_declared(*description.get())) continue;
    note("op_query with " + what);
    const gpunn_op_support support = query(chain.top(), description.get());
    demand(support.score <= 0, "op_query says yes to " + std::string(ops::op_info(signature.op).name) + " with " +
                                   what + ", which the signature in op_list.inc rules out");
  }
}

// --- Strides ---

// Twice as far from element to element; what lies between is NaN or -1.
struct Strided {
  gpunn_tensor tensor;
  std::vector<std::byte> content;
};

constexpr int64_t kStep = 2;

Strided spread(const gpunn_tensor& packed, const std::vector<std::byte>& content) {
  Strided result{packed, std::vector<std::byte>(content.size() * kStep, std::byte{0xFF})};
  for (int32_t d = 0; d < packed.rank; ++d) result.tensor.stride[d] *= kStep;
  const std::size_t elements = static_cast<std::size_t>(plugin::element_count(packed));
  const std::size_t size = elements == 0 ? 0 : content.size() / elements;
  for (std::size_t i = 0; i < elements; ++i) {
    std::memcpy(result.content.data() + i * kStep * size, content.data() + i * size, size);
  }
  return result;
}

// A plugin need not serve strided tensors; who says that it does is taken at its word.
void check_strides(const RawChain& chain, const Case& test, uint64_t seed) {
  ops::Random random(seed, "strided" + test.name);
  const std::vector<ReferenceTensor> inputs = test.inputs(random);
  Question question = question_of(test.signature);
  std::vector<std::vector<std::byte>> contents;
  bool spread_any = false;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    Strided strided = spread(question.inputs[i], ops::encode(inputs[i]));
    spread_any = spread_any || question.inputs[i].rank > 0;
    question.inputs[i] = strided.tensor;
    contents.push_back(std::move(strided.content));
  }
  const std::vector<int>& in_place = ops::op_info(test.signature.op).in_place;
  if (!spread_any || std::ranges::any_of(in_place, [](int input) { return input >= 0; })) return;
  const RawDescription description = question.description();
  if (query(chain.top(), description.get()).score <= 0) return;

  const RawKernel kernel(chain, description);
  std::vector<std::unique_ptr<RawMemory>> memory;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    memory.push_back(std::make_unique<RawMemory>(chain.bottom(), GPUNN_MEMORY_DEVICE, contents[i].size()));
    memory.back()->write(contents[i]);
    question.inputs[i].data = memory.back()->data();
  }
  for (std::size_t i = 0; i < question.outputs.size(); ++i) {
    memory.push_back(
        std::make_unique<RawMemory>(chain.bottom(), GPUNN_MEMORY_DEVICE, test.signature.outputs[i].bytes()));
    question.outputs[i].data = memory.back()->data();
  }
  const RawMemory workspace(chain.bottom(), GPUNN_MEMORY_DEVICE, std::max<uint64_t>(kernel.workspace_bytes(), 1));
  kernel.enqueue(kernel.device().stream(), description, workspace);
  kernel.device().synchronize();
  const Expectation expectation = expect_reference(test.signature, inputs, Precision::fp32);
  for (std::size_t i = 0; i < question.outputs.size(); ++i) {
    std::vector<std::byte> bytes(test.signature.outputs[i].bytes());
    memory[inputs.size() + i]->read(bytes);
    double error = 0;
    const std::string fault = expectation.fault(i, bytes, error);
    demand(fault.empty(), "op_query says yes to inputs with every second element left out, but then " + fault +
                              "; a kernel for packed tensors has to refuse others");
  }
}

// --- Equal answers, and structs of other sizes ---

bool equal(const gpunn_op_support& a, const gpunn_op_support& b) {
  return a.score == b.score && a.workspace_bytes == b.workspace_bytes && a.flags == b.flags &&
         std::strncmp(a.kernels, b.kernels, sizeof(a.kernels)) == 0;
}

void demand_equal(const gpunn_op_support& before, const gpunn_op_support& after, const std::string& when) {
  demand(equal(before, after),
         "op_query answers otherwise " + when + ": score " + std::to_string(before.score) + " and " +
             std::to_string(after.score) + ", workspace " + std::to_string(before.workspace_bytes) + " and " +
             std::to_string(after.workspace_bytes) + " bytes, flags " + std::to_string(before.flags) + " and " +
             std::to_string(after.flags) + ", kernels '" + before.kernels + "' and '" + after.kernels + "'");
}

void check_answers(const RawChain& chain, const graph::OpSignature& signature) {
  const Question question = question_of(signature);
  const RawDescription description = question.description();
  const gpunn_op_support first = query(chain.top(), description.get());
  demand_equal(first, query(chain.top(), description.get()), "the second time");
  Question other = question;
  for (gpunn_tensor& tensor : other.inputs) tensor.dtype = GPUNN_F64;
  query(chain.top(), other.description().get());
  demand_equal(first, query(chain.top(), description.get()), "after another question");
  if (first.score <= 0) return;
  { const RawKernel kernel(chain, description); }
  demand_equal(first, query(chain.top(), description.get()), "when a kernel was created");
}

// A struct with room behind it, as a newer host has it, filled with what an older plugin can't know.
template <class T>
class Grown {
 public:
  explicit Grown(const T& value) {
    std::memset(bytes_, 0x5A, sizeof(bytes_));
    std::memcpy(bytes_, &value, sizeof(T));
    const auto size = static_cast<uint32_t>(sizeof(bytes_));
    std::memcpy(bytes_, &size, sizeof(size));  // struct_size comes first
  }
  T* get() { return reinterpret_cast<T*>(bytes_); }

 private:
  alignas(16) std::byte bytes_[sizeof(T) + 64];
};

void check_newer_host(const RawChain& chain, const graph::OpSignature& signature) {
  const Question question = question_of(signature);
  const RawDescription description = question.description();
  const gpunn_op_support before = query(chain.top(), description.get());

  std::vector<Grown<gpunn_tensor>> tensors;
  for (const std::vector<gpunn_tensor>* list : {&question.inputs, &question.outputs}) {
    for (const gpunn_tensor& tensor : *list) tensors.emplace_back(tensor);
  }
  std::vector<const gpunn_tensor*> pointers;
  for (Grown<gpunn_tensor>& tensor : tensors) pointers.push_back(tensor.get());
  std::vector<std::byte> attrs = question.attrs;
  if (!attrs.empty()) {
    attrs.resize(attrs.size() + 64, std::byte{0x5A});
    const auto size = static_cast<uint32_t>(attrs.size());
    std::memcpy(attrs.data(), &size, sizeof(size));
  }
  gpunn_op_desc desc = *description.get();
  desc.attrs = attrs.empty() ? nullptr : attrs.data();
  desc.inputs = pointers.data();
  desc.outputs = pointers.data() + question.inputs.size();
  Grown<gpunn_op_desc> grown(desc);
  demand_equal(before, query(chain.top(), grown.get()), "to a newer host, whose structs are longer");
}

// One of minor version 0 knows of no kernels with names: there desc ends before that member.
void check_older_host(const RawChain& chain, const graph::OpSignature& signature) {
  const Question question = question_of(signature);
  const RawDescription description = question.description();
  const gpunn_op_support before = query(chain.top(), description.get());
  gpunn_op_desc desc = *description.get();
  desc.struct_size = offsetof(gpunn_op_desc, kernel);
  desc.kernel = "?";  // who reads it finds no such kernel
  gpunn_op_support support;
  std::memset(&support, 0x5A, sizeof(support));
  support.struct_size = offsetof(gpunn_op_support, kernels);
  const RawDevice& device = chain.top();
  const plugins::CallResult result = plugins::guarded(
      [&](gpunn_error* error) { return device.table().op_query(device.device(), &desc, &support, error); });
  demand((result.ok() && support.score > 0) == (before.score > 0),
         "op_query answers otherwise to an older host, whose gpunn_op_desc ends before the kernel's name");
  for (const char c : support.kernels) {
    demand(c == 0x5A, "op_query wrote names of kernels beyond the caller's struct_size");
  }
}

}  // namespace

std::vector<AbiCheck> contract_checks() {
  std::vector<AbiCheck> checks;
  for (const Case& test : ops::one_case_each()) {
    const std::string name(ops::op_info(test.signature.op).name);
    const auto first = static_cast<std::ptrdiff_t>(checks.size());
    // First, while no other question was asked.
    checks.emplace_back("op_query", "answers about " + name + " are equal, whoever asks",
                        [signature = test.signature](const RawChain& chain, const Note& note) {
                          check_answers(chain, signature);
                          note("op_query by a newer host");
                          check_newer_host(chain, signature);
                          note("op_query by an older host");
                          check_older_host(chain, signature);
                        });
    checks.emplace_back("op_query", "refuses what " + name + " is not declared for",
                        [signature = test.signature](const RawChain& chain, const Note& note) {
                          check_refusals(chain, signature, note);
                        });
    checks.emplace_back("op_query", "strided tensors of " + name + " are refused, or served",
                        [test](const RawChain& chain, const Note&) { check_strides(chain, test, 1); });
    for (auto check = checks.begin() + first; check != checks.end(); ++check) check->op = test.signature.op;
  }
  return checks;
}

}  // namespace gpunn::conformance
