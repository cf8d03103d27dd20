export interface PullRequest {
  readonly number: number
  readonly url: string
}

/** Where changes were published last. */
export interface Published {
  readonly repo: string
  readonly commit: string
  readonly branch: string
  /** Null: none was wanted, or it could not be opened. */
  readonly pullRequest: PullRequest | null
}
