// The batch of a training step: samples drawn, normalised and shifted, or what earlier ops make; labels and targets.
#include "common/augmentation.hpp"
#include "common/batch.hpp"
#include "common/random.hpp"
#include "subgraphs/step/match_search.hpp"

namespace gpunn::cuda_tiled {
namespace {

using namespace backends;

// Of the batch that is drawn this rank has some rows, as many in each step.
void rows_of_batch(StepSearch& search, int32_t rows, int32_t batch) {
  StepNetwork& network = search.match.network;
  const gpunn_program_value& part = search.desc.value(rows);
  const gpunn_program_value& all = search.desc.value(batch);
  require(part.root == all.root && part.tensor->dtype == all.tensor->dtype, "a batch that is copied otherwise");
  network.first_row = narrow((part.offset - all.offset) / 4);
  network.rows = narrow(plugin::element_count(search.desc.tensor(search.index)));
  require(network.sample.drop_last != 0 || network.sample.rows % network.sample.batch == 0,
          "rows of a batch that may be partial");
  require(search.constant(search.count, search.loss) == static_cast<double>(network.rows), "a mean over other rows");
}

// Samples drawn by the step's counter, normalised and perhaps shifted.
void drawn_batch(StepSearch& search) {
  Pattern& pattern = search.pattern;
  StepNetwork& network = search.match.network;
  StepValues& values = search.match.values;
  int32_t x = search.x;
  int64_t shifted_rows = 0;
  int64_t shifted_columns = 0;
  const std::size_t shift = pattern.producer(x, search.layer_ops[0].op);
  if (shift != Pattern::kNone && pattern.op(shift) == GPUNN_OP_RANDOM_SHIFT) {
    pattern.take(shift, "");
    const Shift found = shift_of(search.op(shift));
    network.shift = search.op(shift).attrs<gpunn_random_shift_attrs>();
    network.shifted = true;
    search.use_step(pattern.input(shift, 1));
    values.border = search.from_outside(pattern.input(shift, 2));
    require(found.batch.images == search.desc.tensor(x).dim[0], "a shift of another batch");
    shifted_rows = found.batch.rows;
    shifted_columns = found.batch.columns;
    x = pattern.input(shift, 0);
  }
  const std::size_t gather = pattern.producer(x, search.layer_ops[0].op);
  require(gather != Pattern::kNone && pattern.op(gather) == GPUNN_OP_GATHER_NORMALIZE,
          "no samples are gathered and normalised");
  pattern.take(gather, "");
  search.index = pattern.input(gather, 1);
  std::size_t sample = pattern.producer(search.index, gather);
  int32_t drawn = search.index;
  if (sample != Pattern::kNone && pattern.op(sample) == GPUNN_OP_COPY) {
    drawn = pattern.input(sample, 0);
    sample = pattern.producer(drawn, pattern.take(sample, ""));
  }
  require(sample != Pattern::kNone && pattern.op(sample) == GPUNN_OP_SAMPLE_INDICES, "no batch is drawn");
  pattern.take(sample, "");
  network.sample = sample_of(search.op(sample)).attrs;
  network.rows = network.sample.batch;
  search.use_step(pattern.input(sample, 0));
  if (drawn != search.index) {
    rows_of_batch(search, drawn, pattern.output(sample));
  } else {
    require(pattern.output(sample, 1) == search.count, "a mean over other rows");
  }

  const Gather samples = gather_normalize_of(search.op(gather));
  network.data_rows = samples.rows;
  network.data_type = samples.from;
  network.channels = narrow(samples.channels);
  if (network.shifted) {
    network.height = narrow(shifted_rows);
    network.width = narrow(shifted_columns);
  } else if (search.desc.tensor(x).rank != 4) {
    network.height = narrow(samples.row_size / samples.channels);
    network.width = 1;
  }
  values.data = search.from_outside(pattern.input(gather, 0));
  values.scale = search.from_outside(pattern.input(gather, 2));
  values.shift = search.from_outside(pattern.input(gather, 3));
  const std::size_t label = pattern.find({GPUNN_OP_GATHER_ROWS}, {-1, search.index});
  if (label == Pattern::kNone) return;
  const Gather labels = gather_rows_of(search.op(label));
  if (labels.to != GPUNN_I32 || labels.row_size != 1) return;
  pattern.take(label, "");
  network.label_rows = labels.rows;
  network.label_type = labels.from;
  values.labels = search.from_outside(pattern.input(label, 0));
  search.label = pattern.output(label);
}

}  // namespace

void match_batch(StepSearch& search) {
  Pattern& pattern = search.pattern;
  const gpunn_tensor& x = search.desc.tensor(search.x);
  StepNetwork& network = search.match.network;
  require(x.rank >= 2 && x.dtype == GPUNN_F32, "samples that are no rows of numbers");
  const int64_t row = x.dim[0] > 0 ? plugin::element_count(x) / x.dim[0] : 0;
  require(row > 0, "samples without elements");
  const bool image = x.rank == 4;
  network.channels = narrow(image ? x.dim[1] : 1);
  network.height = narrow(image ? x.dim[2] : row);
  network.width = narrow(image ? x.dim[3] : 1);
  const std::size_t mean = pattern.find({GPUNN_OP_MEAN_ROWS}, {pattern.output(search.loss), -1});
  require(mean != Pattern::kNone, "no mean of the losses");
  search.count = pattern.input(mean, 1);
  if (search.with.batch) return drawn_batch(search);
  network.ready = true;
  network.rows = narrow(x.dim[0]);
  network.sample.batch = network.rows;
  network.sample.rows = x.dim[0];
  network.data_type = GPUNN_F32;
  search.match.values.x = search.x;
  search.match.values.count = search.count;
}

// A label that an op of the step reads.
void use_label(StepSearch& search, int32_t id) {
  if (search.with.batch) return require(search.label == id, "labels of other samples");
  require(search.label < 0 || search.label == id, "labels of two kinds");
  search.label = id;
  search.match.values.labels = id;
  search.match.network.label_type = GPUNN_I32;
  search.match.network.label_rows = search.desc.tensor(id).dim[0];
}

// Targets of the losses, [batch, classes].
void use_targets(StepSearch& search, int32_t id) {
  Pattern& pattern = search.pattern;
  StepNetwork& network = search.match.network;
  const int64_t classes = search.layers.back().matrix.outputs;
  require(plugin::element_count(search.desc.tensor(id)) == classes * network.rows, "targets of another size");
  if (!search.with.batch) {
    network.targets = StepTargets::of_row;
    search.match.values.targets = id;
    return;
  }
  const std::size_t table = pattern.producer(id, pattern.end());
  require(table != Pattern::kNone && pattern.op(table) == GPUNN_OP_GATHER_ROWS && search.label >= 0 &&
              pattern.input(table, 1) == search.label,
          "targets that come from no table of the labels");
  const Gather rows = gather_rows_of(search.op(table));
  require(rows.to == GPUNN_F32 && rows.row_size == classes, "targets of another size");
  pattern.take(table, "");
  network.targets = StepTargets::of_label;
  network.target_rows = rows.rows;
  search.match.values.targets = search.from_outside(pattern.input(table, 0));
}

}  // namespace gpunn::cuda_tiled
