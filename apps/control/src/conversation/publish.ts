import type { WorkspaceChange } from '@sandwire/agent'
import type { SandwireError } from '@sandwire/protocol'
import { z } from 'zod'
import { repositoryPath } from '../credentials/git.ts'
import type { Env } from '../env.ts'
import { withDeadline } from '../http/deadline.ts'
import { readBoundedBytes } from '../http/read-bounded.ts'
import { unreachable } from '../providers/upstream.ts'
import { readAgentError, sendToAgent } from '../run/agent-request.ts'
import { diffFactsSchema } from '../run/agent-responses.ts'
import {
  cannotPublish,
  type Change,
  type Publication,
  type Publishable,
  publishableTo,
  publishChange,
  type Publisher,
  publisherOf,
} from '../run/publish.ts'
import type { Published } from '../run/published.ts'
import { repositorySchema } from '../run/repository.ts'
import { noSuchConversation } from '../sandbox/not-found.ts'
import type { SandboxLookup } from '../sandbox/sandbox-lookup.ts'
import { invalidResponse } from '../sandbox/sandboxd-client.ts'
import type { AgentWork } from './agent-work.ts'
import type { Activity } from './frames.ts'
import type { ConversationRecord } from './record.ts'
import type { ConversationStore } from './store.ts'

/** Git reads every file of the workspace. */
const READ_MS = 3 * 60_000
/** A pack, and the names of the changed files. */
const MAX_CHANGE_BYTES = 24 * 1024 * 1024
const MAX_LISTED_FILES = 1_000
const LINE_FEED = 10

const changeSchema = z.object({
  remote: z.string(),
  parent: z.string().regex(/^[0-9a-f]{40}$/),
  branch: z.string().nullable(),
  diff: diffFactsSchema,
}) satisfies z.ZodType<WorkspaceChange>

/** What would be published of a conversation. */
export interface PublishableChange extends Publishable {
  readonly repo: string
  /** Names of changed files, at most 1,000. */
  readonly files: readonly string[]
  /** Changed files that contain a token of the agent, and are left out. */
  readonly withheld: readonly string[]
}

/** A publication of a conversation. `repo` confirms the repository where the sandbox names it. */
export interface ConversationPublication extends Publication {
  readonly repo: string | undefined
}

/** As the sandbox reports it. */
export interface SandboxChange {
  readonly change: WorkspaceChange
  readonly pack: Uint8Array<ArrayBuffer>
}

/** Reads the files of the workspace as a change of its repository. */
export function readChange(
  lookup: Pick<SandboxLookup, 'sandbox'>,
  { sandbox, request: { source } }: Pick<ConversationRecord, 'sandbox' | 'request'>,
  mayStart: boolean,
): Promise<SandboxChange> {
  return withDeadline({ ms: READ_MS, late: () => unreachable() }, async (signal) => {
    const ref = source.kind === 'repo' ? source.ref : undefined
    const path = `/change${ref === undefined ? '' : `?ref=${encodeURIComponent(ref)}`}`
    const request = { method: 'GET', path, mayStart, waitMs: READ_MS } as const
    const response = await sendToAgent(lookup, { sandbox, run: null }, request)
    if (!response.ok) throw await readAgentError(response)
    const bytes = await readBoundedBytes(response, MAX_CHANGE_BYTES, signal)
    if (bytes === undefined) throw cannotPublish('conflict', 'the changes are too large')
    const all = new Uint8Array(bytes)
    const end = all.indexOf(LINE_FEED)
    try {
      const change = changeSchema.parse(JSON.parse(new TextDecoder().decode(all.subarray(0, end))))
      return { change, pack: all.slice(end + 1) }
    } catch {
      throw invalidResponse()
    }
  })
}

export interface ConversationPublisherDependencies {
  readonly store: ConversationStore
  readonly work: Pick<AgentWork, 'readChange'>
  readonly activity: Activity
}

/** Publishes what a conversation has changed. */
export class ConversationPublisher {
  readonly #publisher: Publisher
  readonly #deps: ConversationPublisherDependencies

  /** Throws `conflict` unless the agent rests. */
  constructor(env: Env, deps: ConversationPublisherDependencies) {
    if (deps.activity === 'new') throw cannotPublish('conflict', 'the conversation has not begun')
    if (deps.activity !== 'idle') throw cannotPublish('conflict', 'the agent works; stop it first')
    this.#publisher = publisherOf(env)
    this.#deps = deps
  }

  /** What would be published, and why it cannot be. */
  async describe(): Promise<PublishableChange> {
    const { change } = await this.#deps.work.readChange(false)
    const repo = repositoryOf(this.#record, change)
    const { files, withheld } = change.diff
    const problem = problemOf(change)
    return {
      repo,
      ...publishableTo(this.#publisher, targetOf(this.#record, repo)),
      ...(problem === undefined ? {} : { problem: problem.message }),
      files: files.slice(0, MAX_LISTED_FILES).map(({ path }) => path),
      withheld,
    }
  }

  async publish(publication: ConversationPublication): Promise<Published> {
    const { store, work } = this.#deps
    const change = changeOf(this.#record, await work.readChange(true), publication)
    return publishChange(this.#publisher, change, publication, (published) => {
      // It may have been deleted meanwhile.
      if (store.read() !== undefined) store.update({ published })
    })
  }

  get #record(): ConversationRecord {
    const record = this.#deps.store.read()
    if (record === undefined) throw noSuchConversation()
    return record
  }
}

/** Throws unless the changes can be published as requested. */
function changeOf(
  record: ConversationRecord,
  { change, pack }: SandboxChange,
  { repo: confirmed }: ConversationPublication,
): Change & Pick<SandboxChange, 'pack'> {
  const { source } = record.request
  const repo = repositoryOf(record, change)
  const problem = problemOf(change)
  if (problem !== undefined) throw problem
  // What is in the sandbox must not choose where the operator's token writes.
  if (source.kind !== 'repo' && confirmed !== repo)
    throw cannotPublish('conflict', `the remote is "${repo}"; confirm it with "repo"`)
  const { parent, branch, diff } = change
  return {
    ...targetOf(record, repo),
    ref: source.kind === 'repo' && source.ref !== undefined ? source.ref : (branch ?? undefined),
    parent,
    tree: diff.treeHash,
    // The same publication again makes the same commit.
    atMs: record.usedMs,
    pack,
  }
}

function targetOf({ request: { source } }: ConversationRecord, repo: string) {
  return { repo, installationId: source.kind === 'repo' ? source.installationId : undefined }
}

function problemOf({ diff }: WorkspaceChange): SandwireError | undefined {
  if (diff.files.length === 0) return cannotPublish('conflict', 'nothing was changed')
  if (diff.packBytes === null) return cannotPublish('conflict', 'the changes are too large')
  return undefined
}

/** The repository that the conversation began with, or that of the sandbox. */
function repositoryOf({ request: { source } }: ConversationRecord, { remote }: WorkspaceChange): string {
  const found = parseRemote(remote)
  if (source.kind === 'repo') {
    if (found !== undefined && isSame(found, source.repo)) return source.repo
    throw cannotPublish('conflict', 'the workspace has another repository than the conversation began with')
  }
  if (found === undefined)
    throw cannotPublish('conflict', 'the remote of the repository in the workspace is at no git server')
  return found
}

/** Names at git servers ignore case. */
function isSame(one: string, other: string): boolean {
  const nameOf = (url: string): string => {
    const { host, pathname } = new URL(url)
    return `${host}/${repositoryPath(pathname)}`.toLowerCase()
  }
  return nameOf(one) === nameOf(other)
}

/** The URL of a remote by `https`, without credentials; undefined for one at no server. */
function parseRemote(remote: string): string | undefined {
  const [, host, path] = /^(?:ssh:\/\/)?git@([A-Za-z0-9.-]+)[:/]([^/].*)$/.exec(remote) ?? []
  const url = host === undefined ? remote : `https://${host}/${path}`
  if (!URL.canParse(url)) return undefined
  const parsed = new URL(url)
  const found = `https://${parsed.host}${parsed.pathname}`
  return parsed.protocol === 'https:' && repositorySchema.safeParse(found).success ? found : undefined
}
