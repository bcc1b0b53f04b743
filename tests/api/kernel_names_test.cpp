// plugin.hpp: several kernels for an op, which the host may choose by name.

#include <gpunn/plugin.hpp>

#include <cstring>
#include <string>
#include <vector>

#include "catch.hpp"

namespace {

using namespace gpunn::plugin;

constexpr int32_t kOp = GPUNN_OP_RELU;

struct Entry {
  std::string label;  // of the factory, told when it makes a kernel
  std::string name;
  Support support;
  bool only_by_name = false;
};

std::vector<Entry>& entries() {
  static std::vector<Entry> value;
  return value;
}

std::string& made() {
  static std::string value;
  return value;
}

class LadderDevice final : public HostDevice {
 public:
  LadderDevice() {
    for (const Entry& entry : entries()) {
      add(kOp, {.query = [answer = entry.support](const OpDesc&) { return answer; },
                .create =
                    [label = entry.label](const OpDesc&) {
                      made() = label;
                      return make_kernel([](Stream&, const OpArgs&) {});
                    },
                .name = entry.name,
                .only_by_name = entry.only_by_name});
    }
  }
};

class LadderBackend final : public Backend {
 public:
  const char* name() const override { return "ladder"; }
  const char* version() const override { return "1"; }
  int probe() override { return 1; }
  std::unique_ptr<Device> open(const gpunn_device_options&) override { return std::make_unique<LadderDevice>(); }
};

const gpunn_plugin& table() { return *export_backend<LadderBackend>(GPUNN_ABI_MAJOR, GPUNN_ABI_MINOR); }

// x and y of a RELU, both scalars.
const gpunn_tensor* const* one_scalar() {
  static const gpunn_tensor scalar = [] {
    gpunn_tensor tensor{};
    tensor.struct_size = sizeof(tensor);
    tensor.dtype = GPUNN_F32;
    return tensor;
  }();
  static const gpunn_tensor* const list[] = {&scalar};
  return list;
}

// A device with these factories, closed afterwards.
class Ladder {
 public:
  explicit Ladder(std::vector<Entry> with) {
    entries() = std::move(with);
    gpunn_device_options options{};
    options.struct_size = sizeof(options);
    REQUIRE(table().device_open(&options, &device_, nullptr) == GPUNN_OK);
  }
  Ladder(const Ladder&) = delete;
  Ladder& operator=(const Ladder&) = delete;
  ~Ladder() { table().device_close(device_); }

  gpunn_op_support query(const char* kernel = nullptr, uint32_t flags = 0) const {
    gpunn_op_support support{};
    support.struct_size = sizeof(support);
    const gpunn_op_desc desc = description(kernel, flags);
    REQUIRE(table().op_query(device_, &desc, &support, nullptr) == GPUNN_OK);
    return support;
  }
  // The label of the factory that op_create takes; empty: none.
  std::string create(const gpunn_op_desc& desc) const {
    made().clear();
    gpunn_kernel* kernel = nullptr;
    if (table().op_create(device_, &desc, &kernel, nullptr) == GPUNN_OK) table().op_free(kernel);
    return made();
  }
  std::string create(const char* kernel = nullptr, uint32_t flags = 0) const {
    return create(description(kernel, flags));
  }
  gpunn_device* get() const { return device_; }

  static gpunn_op_desc description(const char* kernel, uint32_t flags = 0) {
    gpunn_op_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.op = kOp;
    desc.flags = flags;
    desc.n_inputs = desc.n_outputs = 1;
    desc.inputs = desc.outputs = one_scalar();
    desc.kernel = kernel;
    return desc;
  }

 private:
  gpunn_device* device_ = nullptr;
};

Support not_deterministic(int score) {
  Support support = Support::yes(0, score);
  support.flags = GPUNN_OP_CAPTURABLE;
  return support;
}

std::vector<Entry> three_variants() {
  return {{"chosen", "", Support::yes(8, 5)},
          {"first", "gemm:1", Support::yes(16, 9), true},
          {"second", "gemm:2", Support::no("needs a multiple of 4"), true},
          {"third", "gemm:3", Support::yes(64, 1), true}};
}

}  // namespace

TEST_CASE("a kernel is taken by its name, and those for that alone never without", "[api]") {
  const Ladder ladder(three_variants());
  CHECK(ladder.query().workspace_bytes == 8);
  CHECK(ladder.create() == "chosen");
  CHECK(ladder.create("") == "chosen");
  CHECK(ladder.query("gemm:1").workspace_bytes == 16);
  CHECK(ladder.create("gemm:1") == "first");
  CHECK(ladder.query("gemm:3").workspace_bytes == 64);
  CHECK(ladder.create("gemm:3") == "third");
}

TEST_CASE("a named kernel that need not be asked for competes by its score", "[api]") {
  const Ladder ladder({{"plain", "", Support::yes(0, 1)}, {"named", "fast", Support::yes(0, 2)}});
  CHECK(ladder.create() == "named");
  CHECK(ladder.create("fast") == "named");
}

TEST_CASE("no other kernel takes the place of one that is wanted", "[api]") {
  const Ladder ladder(three_variants());
  gpunn_op_support support = ladder.query("gemm:2");
  CHECK(support.score == 0);
  CHECK(std::string(support.reason) == "needs a multiple of 4");
  CHECK(ladder.create("gemm:2").empty());
  support = ladder.query("gemm:4");
  CHECK(support.score == 0);
  CHECK(std::string(support.reason) == "this backend has no kernel 'gemm:4' for this op");
  CHECK(ladder.create("gemm:4").empty());
}

TEST_CASE("where every kernel is for its name alone, none is taken without", "[api]") {
  const Ladder ladder({{"first", "gemm:1", Support::yes(), true}});
  const gpunn_op_support support = ladder.query();
  CHECK(support.score == 0);
  CHECK(std::string(support.reason) == "this backend's kernels for this op are taken by name only");
  CHECK(std::string(support.kernels) == "gemm:1");
  CHECK(ladder.create().empty());
}

TEST_CASE("the names of the kernels that serve are told, whichever is wanted", "[api]") {
  const Ladder ladder(three_variants());
  for (const char* wanted : {static_cast<const char*>(nullptr), "gemm:1", "gemm:2", "gemm:9"}) {
    CHECK(std::string(ladder.query(wanted).kernels) == "gemm:1,gemm:3");
  }
  const Ladder unnamed({{"only", "", Support::yes()}});
  CHECK(unnamed.query().kernels[0] == '\0');
}

TEST_CASE("one name of several factories is told once, the best of them taken", "[api]") {
  const Ladder ladder({{"small", "tile", Support::yes(0, 1), true},
                       {"large", "tile", Support::yes(0, 2), true},
                       {"part", "til", Support::yes(), true}});
  CHECK(std::string(ladder.query().kernels) == "tile,til");
  CHECK(ladder.create("tile") == "large");
}

TEST_CASE("a wanted kernel that is not deterministic does not serve where that is required", "[api]") {
  const Ladder ladder({{"steady", "a", Support::yes()}, {"fast", "b", not_deterministic(7)}});
  CHECK(std::string(ladder.query(nullptr, GPUNN_OP_REQUIRE_DETERMINISTIC).kernels) == "a");
  CHECK(ladder.create("b", GPUNN_OP_REQUIRE_DETERMINISTIC).empty());
  CHECK(std::string(ladder.query("b", GPUNN_OP_REQUIRE_DETERMINISTIC).reason) ==
        "no deterministic kernel at this shape");
  CHECK(ladder.create("b") == "fast");
}

TEST_CASE("more names than there is room for end with a whole one", "[api]") {
  std::vector<Entry> many;
  for (int i = 100; i < 300; ++i) many.push_back({"k", "kernel:" + std::to_string(i), Support::yes(), true});
  const std::string names = Ladder(many).query().kernels;
  CHECK(names.size() < sizeof(gpunn_op_support::kernels));
  CHECK(names.size() + 11 >= sizeof(gpunn_op_support::kernels));
  CHECK(names.substr(names.rfind(',')).size() == std::string(",kernel:100").size());
}

TEST_CASE("a host of minor version 0 wants no kernel and is told none", "[api]") {
  const Ladder ladder(three_variants());
  gpunn_op_desc desc = Ladder::description(reinterpret_cast<const char*>(uintptr_t{0xdead}));
  desc.struct_size = offsetof(gpunn_op_desc, kernel);
  CHECK(ladder.create(desc) == "chosen");
  gpunn_op_support support;
  std::memset(&support, '#', sizeof(support));
  support.struct_size = offsetof(gpunn_op_support, kernels);
  REQUIRE(table().op_query(ladder.get(), &desc, &support, nullptr) == GPUNN_OK);
  CHECK(support.score == 5);
  CHECK(support.kernels[0] == '#');
}
