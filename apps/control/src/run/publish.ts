import { concatBytes } from '@sandwire/bytes'
import type { CredentialSettings } from '@sandwire/operator-settings'
import { SandwireError } from '@sandwire/protocol'
import { upstreamOf } from '../credentials/gateway.ts'
import { gitUrlOf, repositoryPath } from '../credentials/git.ts'
import { formatPacket, readPackets } from '../credentials/pkt-line.ts'
import { secretsOf } from '../credentials/secrets.ts'
import type { ReadSecret } from '../credentials/providers.ts'
import {
  findTokenProblem,
  type GitToken,
  openTokenSource,
  type TokenSource,
} from '../credentials/token-source.ts'
import type { Env } from '../env.ts'
import { readBoundedBytes } from '../http/read-bounded.ts'
import { runtimeOf } from '../runtime.ts'
import { addCommit } from './commit-pack.ts'
import type { Published } from './published.ts'
import { openPullRequest } from './pull-request.ts'
import type { RunRecord } from './record.ts'

/** What to make of the changes of a run. */
export interface Publication {
  /** A new branch. */
  readonly branch: string
  readonly title: string
  readonly body: string
  readonly pullRequest: boolean
}

/** Changes of a repository: a tree on one of its commits. */
export interface Change extends Target {
  /** Into which a pull request is opened, if it is a branch. */
  readonly ref: string | undefined
  readonly parent: string
  readonly tree: string
  readonly atMs: number
}

/** Whether changes can be published. */
export interface Publishable {
  /** Why not; null: they can. */
  readonly problem: string | null
  /** A pull request can be opened too. */
  readonly pullRequest: boolean
}

export interface Publisher {
  readonly settings: CredentialSettings
  readonly readSecret: ReadSecret
  readonly tokens: TokenSource
  readonly fetchUpstream: (url: string, init: RequestInit) => Promise<Response>
}

type PublishCheck = Pick<Publisher, 'settings' | 'readSecret'>

/** A repository at a git server. */
interface Target {
  readonly repo: string
  readonly installationId?: number | undefined
}

const PULL_REQUEST_HOST = 'github.com'
const REQUEST_MS = 60_000
/** Of the list of a repository's refs. */
const MAX_REFS_BYTES = 16 * 1024 * 1024
const MAX_REPORT_BYTES = 64 * 1024
const MAX_REASON_CHARS = 300
const NO_COMMIT = '0'.repeat(40)

export function publisherOf(env: Env): Publisher {
  const { config, nowMs, gitTokens } = runtimeOf(env)
  const settings = config.credentials
  const fetchUpstream = upstreamOf(env)
  const readSecret = secretsOf(env)
  const tokens = openTokenSource({ settings, readSecret, fetchUpstream, nowMs }, gitTokens)
  return { settings, readSecret, tokens, fetchUpstream }
}

/** Throws unless the changes of the run can become a commit. */
export function changeOf({ request, state, result, hasPack }: RunRecord): Change {
  const { source } = request
  if (state.kind !== 'ended') throw cannotPublish('conflict', 'the run has not ended')
  if (source.kind !== 'repo') throw cannotPublish('conflict', 'the run has no repository; use its diff')
  const diff = result?.diff
  if (result === null || diff === null || diff === undefined)
    throw cannotPublish('conflict', 'the run has no diff')
  if (diff.files.length === 0) throw cannotPublish('conflict', 'the run changed nothing')
  const { base } = result
  if (base === null || base.commit === null || !base.isCommit || hasPack !== true)
    throw cannotPublish(
      'conflict',
      'the changes do not follow a commit, or are too large; use the diff of the run',
    )
  return {
    repo: source.repo,
    ref: source.ref,
    installationId: source.installationId,
    parent: base.commit,
    tree: diff.treeHash,
    atMs: result.endedMs,
  }
}

/** Whether a run could be published now, without asking the git server; null for one that has not ended or has no repository. */
export function publishableOf(publisher: PublishCheck, record: RunRecord): Publishable | null {
  const { state, request } = record
  const { source } = request
  if (state.kind !== 'ended' || source.kind !== 'repo') return null
  const publishable = publishableTo(publisher, source)
  try {
    changeOf(record)
    return publishable
  } catch (error) {
    return { ...publishable, problem: SandwireError.from(error).message }
  }
}

/** Whether the server can publish to a repository, without asking the git server. */
export function publishableTo(publisher: PublishCheck, to: Target): Publishable {
  const pullRequest = takesPullRequests(to.repo)
  try {
    remoteOf(publisher, to)
    return { problem: null, pullRequest }
  } catch (error) {
    return { problem: SandwireError.from(error).message, pullRequest }
  }
}

function takesPullRequests(repo: string): boolean {
  return new URL(repo).host === PULL_REQUEST_HOST
}

/** Host, path and URL of a repository; throws what the operator must set. */
function remoteOf(
  { settings, readSecret }: PublishCheck,
  { repo, installationId }: Target,
): { readonly host: string; readonly path: string; readonly base: string } {
  const { host, pathname } = new URL(repo)
  const base = gitUrlOf(host, settings)
  if (base === undefined)
    throw cannotPublish(
      'agent_not_configured',
      `git server "${host}" is not configured; add it to "credentials.git"`,
    )
  const problem = findTokenProblem({ settings, readSecret }, { host, installationId })
  if (problem !== undefined) throw cannotPublish('agent_not_configured', problem)
  return { host, path: repositoryPath(pathname), base }
}

/**
 * Pushes the commit to a new branch, and opens a pull request if that is wanted. The same publication again finds its branch, and
 * changes nothing. `store` is called with what was done, also when the pull request then fails.
 */
export async function publishChange(
  publisher: Publisher,
  change: Change & { readonly pack: Uint8Array<ArrayBuffer> },
  { branch, title, body, pullRequest }: Publication,
  store: (published: Published) => void,
): Promise<Published> {
  const { repo, installationId, parent, tree, atMs } = change
  const { host, path, base } = remoteOf(publisher, { repo, installationId })
  if (pullRequest && !takesPullRequests(repo))
    throw cannotPublish('bad_request', `pull requests can be opened at ${PULL_REQUEST_HOST} only`)
  const token = await publisher.tokens.tokenFor({ host, path, access: 'publish', installationId })
  if (token === undefined) throw cannotPublish('agent_not_configured', `there is no token for "${host}"`)
  const message = body === '' ? title : `${title}\n\n${body}`
  const { id, pack } = await addCommit(change.pack, { tree, parent, message, atMs })
  const remote: Remote = { url: `${base}/${path}.git`, token, fetchUpstream: publisher.fetchUpstream }
  await push(remote, { ref: `refs/heads/${branch}`, id, pack })
  const pushed = { repo, commit: id, branch, pullRequest: null }
  store(pushed)
  if (!pullRequest) return pushed
  const { settings, fetchUpstream } = publisher
  const api = { apiUrl: settings.githubApiUrl, token: token.token, fetchUpstream }
  const opened = await openPullRequest(api, { path, branch, base: change.ref, title, body })
  const published = { ...pushed, pullRequest: opened }
  store(published)
  return published
}

interface Remote extends Pick<Publisher, 'fetchUpstream'> {
  readonly url: string
  readonly token: GitToken
}

/** Creates a ref at a commit. */
async function push(
  remote: Remote,
  { ref, id, pack }: { readonly ref: string; readonly id: string; readonly pack: Uint8Array },
): Promise<void> {
  const listed = await send(remote, '/info/refs?service=git-receive-pack', undefined, MAX_REFS_BYTES)
  const found = listed
    .map((line) => /^([0-9a-f]{40}) ([^\0\n]+)/.exec(line))
    .find((match) => match?.[2] === ref)?.[1]
  if (found === id) return
  if (found !== undefined)
    throw cannotPublish('conflict', `branch "${ref.slice('refs/heads/'.length)}" exists; choose another name`)
  const command = `${formatPacket(`${NO_COMMIT} ${id} ${ref}\0report-status agent=sandwire\n`)}0000`
  const body = concatBytes([new TextEncoder().encode(command), pack])
  const report = await send(remote, '/git-receive-pack', body, MAX_REPORT_BYTES)
  if (report[0]?.trim() === 'unpack ok' && report.some((line) => line.trim() === `ok ${ref}`)) return
  const reason = report.filter((line) => !line.startsWith('ok ')).join(' ')
  throw cannotPublish('publish_refused', `the git server refuses the branch: ${printable(reason)}`)
}

/** The packet lines that the git server answers. */
async function send(
  { url, token, fetchUpstream }: Remote,
  path: string,
  body: Uint8Array<ArrayBuffer> | undefined,
  maxBytes: number,
): Promise<readonly string[]> {
  const signal = AbortSignal.timeout(REQUEST_MS)
  const headers = {
    authorization: `Basic ${btoa(`${token.username}:${token.token}`)}`,
    'user-agent': 'git/sandwire',
    ...(body === undefined ? {} : { 'content-type': 'application/x-git-receive-pack-request' }),
  }
  const init = { method: body === undefined ? 'GET' : 'POST', headers, redirect: 'manual', signal } as const
  let response: Response
  try {
    response = await fetchUpstream(`${url}${path}`, { ...init, ...(body === undefined ? {} : { body }) })
  } catch (cause) {
    throw new SandwireError('link_lost', 'Cannot publish the changes: the git server does not respond', {
      cause,
    })
  }
  if (response.status !== 200) {
    await response.body?.cancel()
    throw cannotPublish('publish_refused', `the git server refuses the request (${response.status})`)
  }
  const bytes = await readBoundedBytes(response, maxBytes, signal)
  const lines = bytes === undefined ? undefined : readPackets(new Uint8Array(bytes))
  if (lines === undefined) throw cannotPublish('publish_refused', 'the git server sent no valid answer')
  return lines
}

function printable(text: string): string {
  return text
    .replaceAll(/[\p{Cc}\p{Cf}]+/gu, ' ')
    .trim()
    .slice(0, MAX_REASON_CHARS)
}

export function cannotPublish(
  code: 'agent_not_configured' | 'bad_request' | 'conflict' | 'publish_refused',
  problem: string,
): SandwireError {
  return new SandwireError(code, `Cannot publish the changes: ${problem}`)
}
