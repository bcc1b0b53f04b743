/* Marks what libgpunn exports; everything else is hidden. */
#ifndef GPUNN_EXPORT_H
#define GPUNN_EXPORT_H

#if defined(_WIN32)
#define GPUNN_API __declspec(dllimport)
#else
#define GPUNN_API __attribute__((visibility("default")))
#endif

#endif
