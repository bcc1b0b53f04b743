#include <gpunn/ops.h>

#include <algorithm>

#include "conformance/oracle/call.hpp"

namespace gpunn::conformance {

namespace {

void advance(OracleCall& call) {
  call.out()[0] = call.in(0).at(0) + static_cast<double>(call.attrs<gpunn_advance_attrs>().increment);
}

void table_load(OracleCall& call) {
  const auto step = static_cast<int64_t>(call.in(1).at(0));
  call.out()[0] = call.in(0).at(at(std::min(step, call.in_dim(0, 0) - 1)));
}

void table_store(OracleCall& call) {
  const auto step = static_cast<int64_t>(call.in(1).at(0));
  call.out() = call.in(0);
  call.out().at(at(step % call.in_dim(0, 0))) = call.in(2).at(0);
}

}  // namespace

std::vector<OracleEntry> counter_oracle() {
  return {{GPUNN_OP_ADVANCE, advance}, {GPUNN_OP_TABLE_LOAD, table_load}, {GPUNN_OP_TABLE_STORE, table_store}};
}

}  // namespace gpunn::conformance
