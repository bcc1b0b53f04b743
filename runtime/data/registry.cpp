#include "data/registry.hpp"

#include <gpunn/error.hpp>
#include <gpunn/words.hpp>

#include "common/text.hpp"
#include "data/digits/digits.hpp"
#include "data/published/mnist.hpp"

namespace gpunn::data {

// A file each.
DatasetRow arrays_row();
DatasetRow cifar10_row();
DatasetRow cifar100_row();
DatasetRow csv_row();
DatasetRow detection_folder_row();
DatasetRow digit_and_limit_row();
DatasetRow drawn_digits_row();
DatasetRow drawn_photographs_row();
DatasetRow drawn_shapes_row();
DatasetRow hdf5_row();
DatasetRow image_folder_row();
DatasetRow photograph_folder_row();
DatasetRow photographs_row();
DatasetRow points_row();
DatasetRow segmentation_folder_row();
DatasetRow two_digits_row();

const std::vector<DatasetRow>& registry() {
  static const std::vector<DatasetRow> rows = {mnist_row(),
                                               fashion_mnist_row(),
                                               cifar10_row(),
                                               cifar100_row(),
                                               digits_row(),
                                               two_digits_row(),
                                               digit_and_limit_row(),
                                               points_row(),
                                               image_folder_row(),
                                               hdf5_row(),
                                               csv_row(),
                                               photographs_row(),
                                               photograph_folder_row(),
                                               drawn_photographs_row(),
                                               detection_folder_row(),
                                               drawn_digits_row(),
                                               segmentation_folder_row(),
                                               drawn_shapes_row(),
                                               arrays_row()};
  return rows;
}

const DatasetRow& find_dataset(std::string_view name) {
  std::vector<std::string> names;
  for (const DatasetRow& row : registry()) {
    if (row.name == name) return row;
    names.push_back(row.name);
  }
  throw Error("unknown data set '" + std::string(name) + "'" + advice_or_list(name, names, "'gpunn data list'"),
              ExitCode::usage);
}

}  // namespace gpunn::data
