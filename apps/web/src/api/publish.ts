/** What to make of changes. */
export interface Publication {
  /** A new branch. */
  readonly branch: string
  readonly title: string
  readonly body: string
  readonly pullRequest: boolean
}

/** Where changes were published. */
export interface Published {
  readonly commit: string
  readonly branch: string
  readonly pullRequest: { readonly number: number; readonly url: string } | null
}

/** What would be published of a conversation. */
export interface PublishableChange {
  readonly repo: string
  /** A pull request can be opened too. */
  readonly pullRequest: boolean
  /** Why it cannot be published; null: it can. */
  readonly problem: string | null
  /** Names of changed files. */
  readonly files: readonly string[]
  /** Changed files that are left out. */
  readonly withheld: readonly string[]
}
