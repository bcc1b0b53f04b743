// The section `data` of an experiment.
#pragma once

#include <gpunn/damaged.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <variant>
#include <vector>

namespace gpunn {

// The place of the samples while training: all on the device, or streamed to it batch by batch.
enum class Residency { automatic, device, stream };

// Published or drawn by the program, and without settings of its own: mnist, digits, ...
struct NamedSet {};

enum class LabelMode { fine, coarse };  // 100 classes or 20 superclasses

// The settings of `cifar100`.
struct Cifar100Set {
  LabelMode label_mode = LabelMode::fine;
};

// The character between two columns of a CSV file.
enum class Delimiter { comma, semicolon, tab };

// A CSV table, and which of its columns are learnt: by their names in the header, or their numbers from 0.
struct TargetTable {
  std::string label_column;                 // of the classes, or of lists of labels; empty: the last
  std::vector<std::string> target_columns;  // of numbers, or of a 0 or 1 for each label
  std::string label_separator = "|";        // between two labels of a list
  std::string weight_column;                // of the rows' weights; empty: all rows weigh the same
  bool header = true;                       // the first line has the names of the columns
  Delimiter delimiter = Delimiter::comma;   // between two fields
};

// When images become samples: once, all of them, or each time that one is wanted.
enum class Decoding { automatic, once, each_epoch };

// How images become samples of one size.
struct SizedImages {
  std::vector<int64_t> image_size;  // [H, W] that images are scaled to; empty: the one that all have
  int64_t shorter_side = 0;         // of images before image_size is cut out; 0: the least that covers it
  int64_t channels = 0;             // 1 (grey) or 3; 0: as the images
  Decoding decode = Decoding::automatic;
};

// The user's own images: a folder for each class, or those that a table lists.
struct ImageFolderSet : SizedImages, TargetTable {
  std::filesystem::path targets;           // the table: images with what is learnt of them; empty: folders are classes
  std::filesystem::path test_targets;      // that of the test samples
  std::vector<std::string> input_columns;  // of the table: numbers that models take besides the image
};

// The user's own images with a label map each. Files and folders without a path are below `path`.
struct SegmentationSet : SizedImages {
  std::string images, maps;         // names of the folders with pictures and maps; empty: found by what they hold
  std::string lists;                // a folder of lists of pictures and maps; empty: `path`
  std::filesystem::path instances;  // COCO's JSON file of the training samples, in place of maps
  std::filesystem::path test_instances;
  std::filesystem::path classes;         // the names of the classes, one a line; empty: classes.txt, if it is there
  std::vector<std::string> class_names;  // the names themselves
  std::filesystem::path colour_table;    // the table of colours, if maps are in colours
  int64_t ignore_index = -1;             // id in the maps that stands for no class, besides 255; -1: by its name
};

// The order of dimensions in an array of images; automatic: the one with 1 or 3 channels.
enum class ImageLayout { automatic, channels_first, channels_last };

// The user's own arrays in a file.
struct Hdf5Set {
  std::string train_samples, train_labels;             // names of the arrays
  std::string test_samples, test_labels;               // empty: no test part, or named as the others in test_path
  std::vector<std::string> train_inputs, test_inputs;  // arrays that models take besides the samples
  std::string train_weights, test_weights;             // a weight for each row; empty: all rows weigh the same
  ImageLayout layout = ImageLayout::automatic;
};

// The user's own table.
struct CsvSet : TargetTable {};

// The channels that a model of super-resolution enlarges: brightness alone, or red, green and blue.
enum class ColourPlanes { luma, rgb };
enum class ModelInput { small, enlarged };  // the small image itself, or enlarged by bicubic to the size of its target

// Photographs of any sizes, each with the small image that a model is to enlarge.
struct PhotographSet {
  int64_t scale = 3;                          // how many times larger targets are
  int64_t patch_size = 48;                    // rows and columns of a training target, a multiple of `scale`
  int64_t patches = 16000;                    // of an epoch, each cut at random
  ColourPlanes colours = ColourPlanes::luma;  // what models see: luma alone, or red, green and blue
  ModelInput input = ModelInput::small;
  bool turns = true;                              // patches are turned and mirrored at random
  std::vector<double> also_scaled;                // training images are there in these sizes, too
  std::vector<std::string> train_sets = {"t91"};  // folders of the published images
  std::string test_set = "set5";                  // likewise
  Decoding decode = Decoding::automatic;          // of the training images
  std::filesystem::path small_path;               // the user's own small images; empty: made by bicubic
  std::filesystem::path test_small_path;          // likewise, of the test images
};

// How the files of a data set write boxes: docs/detection.md.
enum class BoxFormat { voc, coco, yolo, csv };

// Images with boxes around the objects that they show, drawn by the program or the user's own, and how training varies
// them.
struct BoxSet {
  std::vector<int64_t> image_size;  // [H, W] of samples, into which images are scaled
  int64_t channels = 3;             // 1 (grey) or 3
  int64_t most_boxes = 100;         // of an image while training
  double flip = 0.5;                // the share of the images that is mirrored
  double vertical_flip = 0;         // likewise, top to bottom
  double transpose = 0;             // the share whose rows and columns are exchanged
  std::vector<double> zoom;         // the least and the most that an image is scaled by; empty: not at all
  double stretch = 1;               // the most that width by height changes by, as a factor
  double colour = 0;                // by how much brightness, contrast and saturation change at most
  double mosaic = 0;                // the share of the samples that is put together of four images
  int64_t mosaic_epochs = 0;        // the first epochs that have such samples; 0: all
  int64_t epoch_samples = 0;        // samples of an epoch; 0: as many as there are images

  // Of the user's own.
  BoxFormat format = BoxFormat::voc;
  std::filesystem::path boxes, test_boxes;        // coco: the JSON files; csv: the tables; yolo: the names of classes
  std::string image_folder = "JPEGImages";        // beneath `path`
  std::string annotation_folder = "Annotations";  // likewise, of voc
  std::string train_list = "trainval", test_list = "test";  // voc: names in ImageSets/Main
  // Of drawn digits.
  int64_t digits = 5;                   // at most, of an image
  std::string digit_source = "digits";  // the set that they are taken from
};

// The section `data` of an experiment.
struct DataConfig {
  std::string task = "classification";  // the experiment's, for messages; no key of its own
  std::string learnt = "class";         // the kind of field that the task learns; no key of its own
  uint64_t order_seed = 1;              // likewise: of what is drawn anew for each training step
  bool whole_images = false;            // likewise: samples are cut anew from images of all sizes
  std::string dataset;                  // mnist, cifar10, ...; or the user's own: image_folder, hdf5, csv
  // The settings of `dataset`. If they are those of another kind, `dataset` has its defaults.
  std::variant<NamedSet, Cifar100Set, ImageFolderSet, SegmentationSet, Hdf5Set, CsvSet, PhotographSet, BoxSet> kind;
  std::filesystem::path path;       // a folder to look in first, or the user's own; empty: none given
  std::filesystem::path test_path;  // of the user's own test samples; empty: with the others
  // Of the user's own images: folders beneath `path`. All empty: they are recognised by their names.
  std::string train_folder, validation_folder, test_folder;
  Damaged damaged = Damaged::error;  // what becomes of damaged images
  std::string offline_fallback;
  int64_t batch_size = 128;
  int64_t eval_batch_size = 0;  // 0: batch_size
  bool shuffle = true;
  bool drop_last = true;             // of training batches
  std::vector<double> mean, stddev;  // by channel, of pixels scaled to [0, 1]; empty: the data set's own
  int64_t train_limit = 0;           // only the first so many samples; 0: all
  int64_t test_limit = 0;
  double test_fraction = 0;        // of the user's own samples, where they have no test part
  double validation_fraction = 0;  // of the training samples: evaluated while training instead of the test samples
  bool stratify = true;            // the same fraction of each class
  bool scale_targets = true;       // numbers are learnt as (target - mean) / stddev
  uint64_t seed = 1;               // of the synthetic sets and of what the fractions take
  int64_t synthetic_train = 0;     // sizes of the synthetic sets; 0: the set's own
  int64_t synthetic_test = 0;
  Residency residency = Residency::automatic;  // where the samples are while training
};

}  // namespace gpunn
