/** A file route of sandboxd. Control exposes it under `/api/…` and proxies it. */
export interface WorkspaceRoute {
  /** `compat` routes report errors as `{"detail": …}` instead of `{"error": …}`. */
  readonly api: 'native' | 'compat'
  /** What the caller must be allowed to do. */
  readonly access: 'read' | 'change'
  /** Query parameters and their descriptions; others are refused. */
  readonly parameters: Readonly<Record<string, string>>
  /** Parameters that may be given more than once. */
  readonly repeatable: readonly string[]
}

/** Why git failed, in the field `reason` of a `git_failed` error, where a client can act on it. */
export const GIT_FAILURE_REASONS = ['author_unknown'] as const
export type GitFailureReason = (typeof GIT_FAILURE_REASONS)[number]

type Parameters = WorkspaceRoute['parameters']

const PATH = { path: 'Path in the workspace; bytes that are not UTF-8 are percent-encoded' } as const
const REPO = { repo: 'Folder of the repository; default: the workspace' } as const

function read(parameters: Parameters, repeatable: readonly string[] = []): WorkspaceRoute {
  return { api: 'native', access: 'read', parameters, repeatable }
}

function change(parameters: Parameters = {}): WorkspaceRoute {
  return { api: 'native', access: 'change', parameters, repeatable: [] }
}

function compat({ access, parameters }: WorkspaceRoute): WorkspaceRoute {
  return { api: 'compat', access, parameters, repeatable: [] }
}

/** Every file route by method and path at sandboxd. The parameters are defined here and nowhere else. */
export const WORKSPACE_ROUTES = {
  'GET /workspace/tree': read({
    ...PATH,
    limit: 'Maximum number of entries',
    after: 'Continue after this name',
  }),
  'GET /workspace/stat': read(PATH),
  'GET /workspace/file': read(PATH),
  'PUT /workspace/file': change({
    ...PATH,
    mode: 'Permissions as a decimal number, as in `stat`: 420 is rw-r--r--',
    mtimeMs: 'Modification time in milliseconds since 1970',
    parents: '1: create missing folders',
  }),
  'DELETE /workspace/file': change({ ...PATH, recursive: '1: delete a folder with its contents' }),
  'POST /workspace/mkdir': change(),
  'POST /workspace/rename': change(),
  'POST /workspace/copy': change(),

  'PUT /workspace/uploads/:id': change({ ...PATH, offset: 'Position of these bytes in the file' }),
  // Only for callers that may write: it describes a file that does not exist yet.
  'GET /workspace/uploads/:id': change(PATH),
  'POST /workspace/uploads/:id': change(),
  'DELETE /workspace/uploads/:id': change(PATH),
  'GET /workspace/archive': read({ ...PATH, after: 'Continue after this entry' }),
  'PUT /workspace/archive': change(PATH),

  'GET /workspace/watch': read({ ...PATH, recursive: '1: include subfolders' }),
  'GET /workspace/tmux': read({}),
  'POST /workspace/tmux': change(),
  'GET /workspace/tmux/events': read({}),

  'GET /workspace/find': read({
    ...PATH,
    q: 'Part of the name, or a pattern',
    limit: 'Maximum number of results',
  }),
  'GET /workspace/search': read(
    {
      ...PATH,
      q: 'Text to search for',
      regex: '1: it is a regular expression',
      case: 'sensitive, insensitive or smart',
      glob: 'Search only files that match; with ! in front, files that do not. May be repeated',
      context: 'Lines before and after a match',
      limit: 'Maximum number of matches',
      hidden: '1: include hidden files',
      ignored: '1: include files that git ignores',
    },
    ['glob'],
  ),

  'GET /workspace/git/repositories': read({}),
  'GET /workspace/git/status': read(REPO),
  'GET /workspace/git/diff': read({
    ...REPO,
    ...PATH,
    old: 'Path before a rename',
    staged: '1: staged changes',
    from: 'Commit',
    to: 'Commit; without `from`, compared with its parent',
  }),
  'GET /workspace/git/show': read({ ...REPO, ...PATH, ref: 'Commit' }),
  'GET /workspace/git/log': read({
    ...REPO,
    ...PATH,
    ref: 'Commit to start at',
    limit: 'Maximum number of commits',
    after: 'Continue after this commit',
  }),
  'GET /workspace/git/branches': read(REPO),
  'POST /workspace/git/stage': change(),
  'POST /workspace/git/unstage': change(),
  'POST /workspace/git/discard': change(),
  'POST /workspace/git/commit': change(),
} as const satisfies Readonly<Record<string, WorkspaceRoute>>

/** The file routes of the compat API. */
export const COMPAT_WORKSPACE_ROUTES = {
  'GET /workspace/compat/tree': compat(read(PATH)),
  'GET /workspace/compat/file': compat(read(PATH)),
  'PUT /workspace/compat/file': compat(change(PATH)),
  'DELETE /workspace/compat/file': compat(change(PATH)),
  'POST /workspace/compat/file/rename': compat(change()),
  'POST /workspace/compat/file/move': compat(change()),
  'GET /workspace/compat/search': compat(read({ ...PATH, q: 'Part of the name, or a pattern' })),
  'GET /workspace/compat/git/status': compat(read({})),
  'GET /workspace/compat/git/diff': compat(read(PATH)),
  'GET /workspace/compat/git/show': compat(read(PATH)),
} as const satisfies Readonly<Record<string, WorkspaceRoute>>

/** `METHOD /path`, as sandboxd serves it. */
export type WorkspaceRouteName = keyof typeof WORKSPACE_ROUTES
export type CompatWorkspaceRouteName = keyof typeof COMPAT_WORKSPACE_ROUTES
