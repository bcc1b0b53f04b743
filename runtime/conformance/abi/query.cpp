#include <gpunn/error.hpp>
#include <gpunn/ops.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <functional>
#include <map>
#include <span>
#include <string_view>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conformance/abi/abi_checks.hpp"
#include "conformance/cases/case.hpp"
#include "execution/backend.hpp"
#include "graph/op_info.hpp"

namespace gpunn::conformance {

namespace {

gpunn_op_support query(const RawDevice& device, const gpunn_op_desc* desc) {
  gpunn_op_support support{};
  support.struct_size = sizeof(support);
  const plugins::CallResult result = plugins::guarded(
      [&](gpunn_error* error) { return device.table().op_query(device.device(), desc, &support, error); });
  demand(result.status >= GPUNN_OK && result.status <= GPUNN_INTERNAL,
         "op_query returned status " + std::to_string(result.status) + ", which abi.h lacks");
  if (!result.ok()) support.score = 0;
  return support;
}

void check_unknown_op(const RawChain& chain) {
  for (const int32_t op : {0, -1, 99999, 2147483647}) {
    const RawDescription description(op, nullptr, {}, {});
    const gpunn_op_support support = query(chain.top(), description.get());
    demand(support.score <= 0, "op_query serves op " + std::to_string(op) + ", which does not exist");
  }
}

// What is asked about, with room to spoil it.
struct Question {
  int32_t op;
  std::vector<std::byte> attrs;
  std::vector<gpunn_tensor> inputs, outputs;
};

std::vector<gpunn_tensor> tensors(const std::vector<TensorType>& types) {
  std::vector<gpunn_tensor> result;
  for (const TensorType& type : types) result.push_back(execution::abi_tensor(type, nullptr));
  return result;
}

Question question_of(const graph::OpSignature& signature) {
  Question question{signature.op, {}, tensors(signature.inputs), tensors(signature.outputs)};
  const auto* bytes = static_cast<const std::byte*>(signature.attrs.data());
  question.attrs.assign(bytes, bytes + signature.attrs.size());
  return question;
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

// In the child: a crash ends it at once and in silence, whatever handlers the host has, and a query that hangs ends
// too.
void make_mortal() {
  for (const int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM}) std::signal(number, SIG_DFL);
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  constexpr unsigned kSeconds = 10;
  alarm(kSeconds);
}

// How a child process that asks these questions ends; empty: as it should. A crash of the plugin is thus a failed case
// and not the end of the check. A query is free of side effects, and what it answers is of no interest here.
std::string ask_in_child(const RawDevice& device, std::span<const Question> questions) {
  const pid_t child = fork();
  if (child < 0) throw Error("no child process could be started: " + std::string(std::strerror(errno)));
  if (child == 0) {
    make_mortal();
    // Whatever the plugin writes while it dies is no part of the report.
    const int null = ::open("/dev/null", O_WRONLY);
    if (null >= 0) dup2(null, STDERR_FILENO);
    int code = 0;
    try {
      for (const Question& question : questions) {
        const RawDescription description(question.op, question.attrs.empty() ? nullptr : question.attrs.data(),
                                         question.inputs, question.outputs);
        query(device, description.get());
      }
    } catch (...) {
      code = 1;
    }
    _exit(code);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) {
    return WTERMSIG(status) == SIGALRM ? "hung" : "crashed: " + std::string(strsignal(WTERMSIG(status)));
  }
  return WEXITSTATUS(status) == 0 ? "" : "ended the process, or returned a status that abi.h lacks";
}

void check_nonsense(const RawChain& chain, const graph::OpSignature& signature) {
  const std::vector<Nonsense> kinds = nonsense();
  std::vector<Question> questions;
  for (const Nonsense& kind : kinds) {
    questions.push_back(question_of(signature));
    kind.spoil(questions.back());
  }
  const std::string together = ask_in_child(chain.top(), questions);
  if (together.empty()) return;
  // One by one, to find which.
  for (std::size_t i = 0; i < questions.size(); ++i) {
    const std::string alone = ask_in_child(chain.top(), std::span(questions).subspan(i, 1));
    demand(alone.empty(), std::string("op_query with ") + kinds[i].what + " " + alone);
  }
  throw Error("op_query, asked " + std::to_string(questions.size()) + " questions in a row, " + together);
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
    checks.push_back({"op_query", "survives nonsense about " + std::string(graph::op_info(op).name),
                      [signature = signature](const RawChain& chain) { check_nonsense(chain, signature); }});
  }
  return checks;
}

}  // namespace gpunn::conformance
