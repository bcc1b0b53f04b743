#include <gpunn/error.hpp>
#include <gpunn/ops.h>

#include <cstddef>
#include <cstring>
#include <functional>
#include <map>
#include <string_view>

#include "conformance/abi/abi_checks.hpp"
#include "conformance/abi/question.hpp"
#include "ops/case.hpp"
#include "ops/op.hpp"

namespace gpunn::conformance {

using ops::all_cases;
using ops::Case;

namespace {

void check_unknown_op(const RawChain& chain) {
  for (const int32_t op : {0, -1, 99999, 2147483647}) {
    const RawDescription description(op, nullptr, {}, {});
    const gpunn_op_support support = query(chain.top(), description.get());
    demand(support.score <= 0, "op_query serves op " + std::to_string(op) + ", which does not exist");
  }
}

// Every attribute but struct_size set to 32-bit words of one value.
void set_attributes(Question& question, int32_t word) {
  for (std::size_t i = sizeof(uint32_t); i + sizeof(word) <= question.attrs.size(); i += sizeof(word)) {
    std::memcpy(question.attrs.data() + i, &word, sizeof(word));
  }
}

void set_struct_size(Question& question, uint32_t size) {
  if (!question.attrs.empty()) std::memcpy(question.attrs.data(), &size, sizeof(size));
}

void set_dimensions(Question& question, int64_t size) {
  for (auto* list : {&question.inputs, &question.outputs}) {
    for (gpunn_tensor& tensor : *list) {
      for (int32_t i = 0; i < tensor.rank; ++i) tensor.dim[i] = size;
    }
  }
}

void set_first_dimension(Question& question, int64_t size) {
  for (auto* list : {&question.inputs, &question.outputs}) {
    for (gpunn_tensor& tensor : *list) tensor.dim[0] = tensor.rank > 0 ? size : 1;
  }
}

void set_ranks(Question& question, int32_t rank) {
  for (auto* list : {&question.inputs, &question.outputs}) {
    for (gpunn_tensor& tensor : *list) tensor.rank = rank;
  }
}

void set_types(Question& question, int32_t dtype) {
  for (auto* list : {&question.inputs, &question.outputs}) {
    for (gpunn_tensor& tensor : *list) tensor.dtype = dtype;
  }
}

struct Nonsense {
  const char* what;
  std::function<void(Question&)> spoil;
};

std::vector<Nonsense> nonsense() {
  return {
      {"no attributes", [](Question& q) { q.attrs.clear(); }},
      {"attributes of 0", [](Question& q) { set_attributes(q, 0); }},
      {"attributes of -1", [](Question& q) { set_attributes(q, -1); }},
      {"attributes of 2^31 - 1", [](Question& q) { set_attributes(q, 2147483647); }},
      {"attributes of -2^31", [](Question& q) { set_attributes(q, -2147483647 - 1); }},
      {"a struct_size of 4", [](Question& q) { set_struct_size(q, sizeof(uint32_t)); }},
      {"dimensions of 0", [](Question& q) { set_dimensions(q, 0); }},
      {"dimensions of -7", [](Question& q) { set_dimensions(q, -7); }},
      {"a first dimension of 2^40", [](Question& q) { set_first_dimension(q, int64_t{1} << 40); }},
      {"inputs of rank 0", [](Question& q) { set_ranks(q, 0); }},
      {"inputs of rank 1", [](Question& q) { set_ranks(q, 1); }},
      {"inputs of rank 8",
       [](Question& q) {
         set_ranks(q, 8);
         set_dimensions(q, 2);
       }},
      {"type f64", [](Question& q) { set_types(q, GPUNN_F64); }},
      {"type u8", [](Question& q) { set_types(q, GPUNN_U8); }},
      {"type 77", [](Question& q) { set_types(q, 77); }},
  };
}

// A query is free of side effects, and what it answers to nonsense is of no interest here: it must come back.
void check_nonsense(const RawChain& chain, const graph::OpSignature& signature, const Note& note) {
  for (const Nonsense& kind : nonsense()) {
    note(std::string("op_query with ") + kind.what);
    Question question = question_of(signature);
    kind.spoil(question);
    query(chain.top(), question.description().get());
  }
}

// A plugin of a later minor version may write less or more; what the host gave room for is the limit.
void check_short_support(const RawChain& chain) {
  const RawDevice& device = chain.top();
  gpunn_op_support support;
  std::memset(&support, 0x5A, sizeof(support));
  support.struct_size = offsetof(gpunn_op_support, reason);
  const RawDescription unknown(99999, nullptr, {}, {});
  plugins::guarded(
      [&](gpunn_error* error) { return device.table().op_query(device.device(), unknown.get(), &support, error); });
  for (const char c : support.reason) demand(c == 0x5A, "op_query wrote a reason beyond the caller's struct_size");
}

}  // namespace

std::vector<AbiCheck> query_checks() {
  std::vector<AbiCheck> checks{{"op_query", "does not serve unknown ops", check_unknown_op},
                               {"op_query", "writes no more than struct_size", check_short_support}};
  std::map<int32_t, graph::OpSignature> first;
  for (const Case& test : all_cases()) {
    // The first case of most ops is a single element; any will do.
    first.emplace(test.signature.op, test.signature);
  }
  for (const auto& [op, signature] : first) {
    checks.emplace_back(
        "op_query", "survives nonsense about " + std::string(ops::op_info(op).name),
        [signature = signature](const RawChain& chain, const Note& note) { check_nonsense(chain, signature, note); });
  }
  return checks;
}

}  // namespace gpunn::conformance
