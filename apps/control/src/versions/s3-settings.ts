/** A bucket of an S3-compatible service. */
export interface S3Settings {
  /** Origin of the service. */
  readonly endpoint: string
  readonly region: string
  readonly bucket: string
  /** In front of every key, without slashes at its ends; empty: none. */
  readonly prefix: string
}
