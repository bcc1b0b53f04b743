// subgraph.hpp: the table of C functions that it makes of a plugin author's class.

#include <gpunn/subgraph.hpp>

#include <algorithm>
#include <cstring>
#include <vector>

#include "catch.hpp"

namespace {

using namespace gpunn::plugin;

// Two ops: 0 -> 1, 1 -> 2.
struct TwoOps {
  gpunn_tensor tensor{};
  gpunn_program_value values[3]{};
  const gpunn_program_value* value_pointers[3]{};
  const gpunn_tensor* operands[2] = {&tensor, &tensor};
  int32_t ids[3] = {0, 1, 2};
  gpunn_op_desc op_descs[2]{};
  gpunn_program_op ops[2]{};
  const gpunn_program_op* op_pointers[2]{};
  gpunn_program_desc desc{};

  TwoOps() {
    tensor.struct_size = sizeof(tensor);
    for (int32_t i = 0; i < 3; ++i) {
      values[i] = {.struct_size = sizeof(gpunn_program_value),
                   .storage = GPUNN_STORAGE_ARENA,
                   .tensor = &tensor,
                   .offset = 0,
                   .root = i,
                   .first_write = i - 1,
                   .last_read = i,
                   .reserved = 0};
      value_pointers[i] = &values[i];
    }
    for (int32_t i = 0; i < 2; ++i) {
      op_descs[i].struct_size = sizeof(gpunn_op_desc);
      op_descs[i].op = GPUNN_OP_RELU;
      op_descs[i].n_inputs = op_descs[i].n_outputs = 1;
      op_descs[i].inputs = op_descs[i].outputs = operands;
      ops[i] = {.struct_size = sizeof(gpunn_program_op),
                .reserved = 0,
                .desc = &op_descs[i],
                .inputs = &ids[i],
                .outputs = &ids[i + 1]};
      op_pointers[i] = &ops[i];
    }
    desc.struct_size = sizeof(desc);
    desc.n_ops = 2;
    desc.n_values = 3;
    desc.precision = GPUNN_PRECISION_TF32;
    desc.flags = GPUNN_OP_REQUIRE_DETERMINISTIC;
    desc.ops = op_pointers;
    desc.values = value_pointers;
  }
};

int running = 0;

class FusingDevice final : public HostDevice {
 public:
  SubgraphSupport query_subgraph(const ProgramDesc& desc, std::size_t first, std::size_t limit) {
    CHECK(desc.ops() == 2);
    CHECK(desc.values() == 3);
    CHECK(desc.precision() == GPUNN_PRECISION_TF32);
    CHECK(desc.require_deterministic());
    CHECK(desc.op(1).op() == GPUNN_OP_RELU);
    CHECK(std::ranges::equal(desc.inputs(1), std::vector<int32_t>{1}));
    CHECK(std::ranges::equal(desc.outputs(1), std::vector<int32_t>{2}));
    CHECK(desc.comes_in(0, 0));
    CHECK_FALSE(desc.comes_in(1, 0));
    CHECK(desc.comes_in(1, 1));
    CHECK(desc.needed_after(1, 1));
    CHECK_FALSE(desc.needed_after(1, 2));
    if (first == 1) return SubgraphSupport::no("not from here");
    if (limit == 1) throw Failure(GPUNN_UNSUPPORTED, "too few");
    return SubgraphSupport::yes(limit, "both", 256);
  }
  std::unique_ptr<Subgraph> create_subgraph(const ProgramDesc&, std::size_t first, std::size_t count) {
    if (first + count > 2) throw Failure(GPUNN_INVALID_ARGUMENT, "beyond the end");
    return make_subgraph([](Stream&, const SubgraphArgs& args) {
      CHECK_FALSE(args.has(1));
      CHECK(args.data<float>(1) == nullptr);
      *args.data<float>(2) = *args.data<float>(0) + *args.workspace<float>();
      ++running;
    });
  }
};

}  // namespace

TEST_CASE("values overlap by the bytes that their dtypes take", "[api]") {
  for (const gpunn::ops::Dtype& dtype : gpunn::ops::kDtypes) {
    INFO(dtype.name);
    gpunn_tensor tensor{};
    tensor.struct_size = sizeof(tensor);
    tensor.dtype = dtype.id;
    tensor.rank = 1;
    tensor.dim[0] = 10;
    gpunn_program_value values[2]{};
    const gpunn_program_value* both[2];
    for (std::size_t i = 0; i < 2; ++i) {
      values[i].struct_size = sizeof(values[i]);
      values[i].tensor = &tensor;
      both[i] = &values[i];
    }
    gpunn_program_desc desc{};
    desc.struct_size = sizeof(desc);
    desc.values = both;
    desc.n_values = 2;
    values[1].offset = static_cast<int64_t>(10 * dtype.bytes);
    CHECK_FALSE(ProgramDesc(desc).overlap(0, 1));
    --values[1].offset;
    CHECK(ProgramDesc(desc).overlap(0, 1));
  }
  CHECK(gpunn::ops::dtype_bytes(GPUNN_BF16) == 2);
  CHECK(gpunn::ops::dtype_bytes(99) == 0);
}

TEST_CASE("the table of the subgraph extension", "[api]") {
  const gpunn_subgraph_extension& table = *subgraph_extension<FusingDevice>();
  CHECK(table.struct_size == sizeof(gpunn_subgraph_extension));
  FusingDevice own;
  Device& device = own;
  auto* const handle = reinterpret_cast<gpunn_device*>(&device);
  const TwoOps two;
  gpunn_error error{};
  error.struct_size = sizeof(error);

  gpunn_subgraph_support subgraph{};
  subgraph.struct_size = sizeof(subgraph);
  REQUIRE(table.query(handle, &two.desc, 0, 2, &subgraph, &error) == GPUNN_OK);
  CHECK(subgraph.n_ops == 2);
  CHECK(subgraph.workspace_bytes == 256);
  CHECK(subgraph.flags == (GPUNN_OP_DETERMINISTIC | GPUNN_OP_CAPTURABLE));
  CHECK(std::string(subgraph.name) == "both");
  REQUIRE(table.query(handle, &two.desc, 1, 1, &subgraph, &error) == GPUNN_OK);
  CHECK(subgraph.n_ops == 0);
  CHECK(std::string(subgraph.reason) == "not from here");
  CHECK(table.query(handle, &two.desc, 0, 1, &subgraph, &error) == GPUNN_UNSUPPORTED);
  CHECK(std::string(error.message) == "too few");

  gpunn_subgraph* program = nullptr;
  CHECK(table.create(handle, &two.desc, 1, 2, &program, &error) == GPUNN_INVALID_ARGUMENT);
  CHECK(program == nullptr);
  REQUIRE(table.create(handle, &two.desc, 0, 2, &program, &error) == GPUNN_OK);
  float in = 1, out = 0, scratch = 2;
  gpunn_tensor first = two.tensor, last = two.tensor;
  first.data = &in;
  last.data = &out;
  const gpunn_tensor* const values[] = {&first, nullptr, &last};
  gpunn_subgraph_args args{};
  args.struct_size = sizeof(args);
  args.n_values = 3;
  args.values = values;
  args.workspace = &scratch;
  args.workspace_bytes = sizeof(scratch);
  const std::unique_ptr<Stream> stream = device.create_stream();
  REQUIRE(table.enqueue(program, reinterpret_cast<gpunn_stream*>(stream.get()), &args, &error) == GPUNN_OK);
  CHECK(out == 3);
  CHECK(running == 1);
  table.destroy(program);
}

TEST_CASE("the smaller answer of an older host is filled as far as it goes", "[api]") {
  FusingDevice own;
  Device& device = own;
  const TwoOps two;
  gpunn_subgraph_support subgraph;
  std::memset(&subgraph, 0x5A, sizeof(subgraph));
  subgraph.struct_size = offsetof(gpunn_subgraph_support, name);
  REQUIRE(subgraph_extension<FusingDevice>()->query(reinterpret_cast<gpunn_device*>(&device), &two.desc, 0, 2,
                                                    &subgraph, nullptr) == GPUNN_OK);
  CHECK(subgraph.n_ops == 2);
  CHECK(subgraph.struct_size == offsetof(gpunn_subgraph_support, name));
  CHECK(subgraph.name[0] == 0x5A);
}
