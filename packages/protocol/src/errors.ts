/** What one error code means on every surface: HTTP, WebSocket, command line, retry logic. */
export interface ErrorInfo {
  /** Status of an HTTP response. */
  readonly status: number
  /** WebSocket close code when the error ends a connection. */
  readonly close: number
  /** Exit code of `sbx-stdio` when it fails with this error. */
  readonly exit: number
  /** True when the same client may try again without changing anything. */
  readonly retryable: boolean
}

const final = (status: number, close: number, exit = 255): ErrorInfo => ({
  status,
  close,
  exit,
  retryable: false,
})
const transient = (status: number, close: number): ErrorInfo => ({
  status,
  close,
  exit: 255,
  retryable: true,
})

/** Every error of Sandwire. Codes are stable: they are part of the wire. */
export const ERRORS = {
  /** A parameter is missing, unknown, malformed or out of range. */
  bad_request: final(400, 4400, 2),
  /** A frame cannot be decoded or is not allowed at this point of the connection. */
  bad_frame: final(400, 4402),
  /** No credential, or one that is not accepted. */
  unauthorized: final(401, 4401),
  /** The credential is good but does not allow this. */
  forbidden: final(403, 4403),
  /** The request comes from a web page whose origin is not listed. */
  origin_refused: final(403, 4403),
  /** The Host header does not name this server. */
  host_refused: final(421, 4421),
  /** No such route. */
  not_found: final(404, 4404),
  /** The route exists but not with this method. */
  method_not_allowed: final(405, 4405),
  /** The route speaks WebSocket only. */
  upgrade_required: final(426, 4426, 2),
  /** No session has this id, or it is not yours. */
  session_not_found: final(404, 4404),
  /** The session has ended. */
  session_gone: final(410, 4410),
  /** No sandbox has this id or name, or it is not yours. */
  sandbox_not_found: final(404, 4404),
  /** The sandbox is stopped, and the request must not start it. */
  sandbox_stopped: final(409, 4411),
  /** The sandbox could not be started, or broke. */
  sandbox_failed: transient(502, 4412),
  /** The sandbox had files, and they are not where the server keeps them. */
  files_missing: final(500, 4420),
  /** The sandbox does not answer. */
  sandbox_unreachable: transient(502, 4413),
  /** The provider of sandboxes does not answer. */
  provider_unavailable: transient(503, 4414),
  /** Nobody can sign in: no identity issuer is configured. */
  no_issuer: final(503, 4417),
  /** The identity issuer cannot be reached, so tokens with unknown keys cannot be verified. */
  issuer_unavailable: transient(503, 4418),
  /** Stopping would lose the files, and the request did not confirm that. */
  needs_discard: final(409, 4415),
  /** Another sandbox of the account has this name. */
  name_taken: final(409, 4416),
  /** The sandbox is being destroyed, which is finished even if the request for it failed. */
  sandbox_destroying: final(409, 4419),
  /** The account has reached its limit of sandboxes. */
  too_many_sandboxes: final(429, 4456),
  /** A sandbox, its account or the machine would exceed a ceiling of the operator; the details name it. */
  ceiling_exceeded: final(429, 4455),
  /** The same create id was used with other parameters, or an upload is at another offset. */
  conflict: final(409, 4409),
  /** A parameter works only with the `sandwire.v1` subprotocol. */
  needs_v1: final(426, 4426, 2),
  /** The two sides share no protocol version. */
  version_unsupported: final(426, 4426),
  /** Input, resize or signal came from an attachment whose role does not allow it. */
  role_refused: final(403, 4430),
  /** The attachment to resume is no longer known, and neither are its offsets. */
  resume_lost: final(410, 4431),
  /** The two sides disagree about an offset or a sequence number. */
  desync: final(409, 4432),
  /** A newer connection of the same attachment took over. */
  replaced: final(409, 4433),
  /** The session was ended on request while attached. */
  session_ended: final(410, 4434),
  /** The authorization of the connection was revoked. */
  revoked: final(403, 4435),
  /** The authorization must be renewed; a client that resumes with a new credential loses nothing. */
  reauthorise: transient(401, 4436),
  /** The share link was used, has expired or was revoked. */
  link_spent: final(410, 4437),
  /** The operator does not allow the command. */
  command_blocked: final(403, 4445, 126),
  /** No command template has this id, or its parameters do not fit. */
  bad_template: final(422, 4446, 2),
  /** The command does not exist. */
  command_not_found: final(422, 4440, 127),
  /** The command exists but cannot be executed. */
  command_not_executable: final(422, 4441, 126),
  /** The process could not be started for another reason. */
  spawn_failed: final(422, 4442, 126),
  /** A terminal line in canonical mode was longer than the kernel's buffer and was discarded. */
  line_too_long: final(413, 4443),
  /** A frame or body is larger than the limit. */
  frame_too_large: final(413, 1009),
  /** A plain client sent input much faster than the process reads it. */
  input_overflow: final(413, 4444),
  /** The sandbox has reached its limit of sessions. */
  too_many_sessions: final(429, 4450),
  /** The session has reached its limit of attachments. */
  too_many_attachments: final(429, 4451),
  /** The sandbox or account has reached its limit of grants. */
  too_many_grants: final(429, 4457),
  /** The account attaches too often. */
  too_many_attaches: transient(429, 4458),
  /** Too many requests come from this network address. */
  too_many_from_address: transient(429, 4459),
  /** Frames or requests come faster than the limit, or too many are in progress. */
  rate_limited: transient(429, 4452),
  /** The hello was not received in time. */
  hello_timeout: transient(408, 4453),
  /** Nothing was received from the peer for too long. */
  silent: transient(408, 4454),
  /** The path is malformed, leads out of the workspace by `..` or by a symlink, or is not a folder to run in. */
  path_refused: final(400, 4460, 2),
  /** Nothing is at the path. */
  file_not_found: final(404, 4461),
  /** Something is at the path already. */
  file_exists: final(409, 4462),
  /** A folder is needed, and the path names something else. */
  not_a_folder: final(400, 4463),
  /** A file is needed, and the path names a folder. */
  is_a_folder: final(400, 4464),
  /** The folder is not empty, and the request does not include its content. */
  folder_not_empty: final(409, 4465),
  /** Neither a file nor a folder: a device, a pipe or a socket. */
  special_file: final(422, 4466),
  /** The user of the sandbox may not do this to the file. */
  file_refused: final(403, 4467),
  /** The file has changed since the request was made. */
  file_changed: final(412, 4468),
  /** The file is too large to be read in one response. */
  file_too_large: final(413, 4469),
  /** The requested range is outside the file. */
  range_refused: final(416, 4470),
  /** No space is left for files. */
  disk_full: final(507, 4471),
  /** The folder is not in a git repository. */
  not_a_repository: final(409, 4472),
  /** Git refused the operation. */
  git_failed: final(409, 4473),
  /** The operation took too long, or a session reached one of its timeouts. */
  timed_out: transient(504, 4474),
  /** The sandbox cannot handle file requests at the moment. */
  workspace_unavailable: transient(503, 4475),
  /** A saved version cannot be read: bytes of it are missing or damaged. */
  version_damaged: final(500, 4476),
  /** The store of saved versions does not respond. */
  store_unavailable: transient(503, 4477),
  /** The operator has not configured what a coding agent needs, such as a key of the model API; the text names the setting. */
  agent_not_configured: final(503, 4478),
  /** No run has this id, or it is not yours. */
  run_not_found: final(404, 4404),
  /** The run has ended, so that it takes no messages and approvals. */
  run_ended: final(409, 4479),
  /** The run is queued or being prepared, so that its agent cannot be reached yet. */
  run_not_started: transient(409, 4480),
  /** The agent is open in a terminal of the sandbox, or works there without one; it cannot do both at the same time. */
  agent_in_use: final(409, 4492),
  /** The account has too many queued runs. */
  too_many_runs: final(429, 4481),
  /** The agent of a run failed, or could not be started. */
  run_failed: final(422, 4482, 1),
  /** A run was aborted. */
  run_aborted: final(410, 4483, 130),
  /** A run reached a time limit. */
  run_timed_out: final(408, 4484, 124),
  /** A run reached its budget or its limit of turns. */
  run_over_budget: final(402, 4485, 3),
  /** The agent of a run, or its sandbox, ended unexpectedly. */
  run_crashed: final(500, 4486, 4),
  /** The files of a run are gone, so that there is no diff. */
  run_lost: final(500, 4487, 5),
  /** The git server or its API did not accept what was published; the text has its reason. */
  publish_refused: final(422, 4491),
  /** The server is stopping. */
  shutting_down: transient(503, 1012),
  /** The connection broke. */
  link_lost: transient(502, 1006),
  /** A bug or an unexpected condition in the server. */
  internal: transient(500, 1011),
} as const satisfies Record<string, ErrorInfo>

export type ErrorCode = keyof typeof ERRORS

/** Narrows a string from the wire to a code this version knows. */
export function isErrorCode(text: string): text is ErrorCode {
  return Object.hasOwn(ERRORS, text)
}

/** What a program may act on besides the code; sent in the error body of the HTTP API. */
export interface ErrorDetails {
  /** Field of the request body that was refused, with dots between nested names. */
  readonly field?: string
  /** What is wrong with the field, without its name. */
  readonly problem?: string
  /** The sign-in or the account was ended after the token was issued. */
  readonly reason?: 'sign_in_ended'
  /** Ceiling that was reached, such as `account.memoryBytes`. */
  readonly ceiling?: string
  /** Value of the ceiling. */
  readonly limit?: number | readonly string[] | undefined
  /** How much of it is in use already, where it counts several sandboxes. */
  readonly used?: number | undefined
  /** What the request asked for; null: without an end. */
  readonly asked?: number | string | null | undefined
}

/** The one error class of Sandwire. `cause` is for logs and never leaves the process. */
export class SandwireError extends Error {
  readonly code: ErrorCode
  /** How long to wait before a retry, where known. */
  readonly retryAfterMs: number | undefined
  readonly details: ErrorDetails

  constructor(
    code: ErrorCode,
    message: string,
    options?: { cause?: unknown; retryAfterMs?: number | undefined; details?: ErrorDetails },
  ) {
    super(message, options)
    this.name = 'SandwireError'
    this.code = code
    this.retryAfterMs = options?.retryAfterMs
    this.details = options?.details ?? {}
  }

  get info(): ErrorInfo {
    return ERRORS[this.code]
  }

  /** Converts a caught value to an error with a code; unknown values become `internal`. */
  static from(caught: unknown): SandwireError {
    if (caught instanceof SandwireError) return caught
    return new SandwireError('internal', 'Internal error', { cause: caught })
  }
}
