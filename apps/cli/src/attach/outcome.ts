import type { SessionDetails } from '@sandwire/client'
import type { Exit, SandwireError, StopReason } from '@sandwire/protocol'
import { shellQuote } from '@sandwire/shell-quote'
import { reattachCommand, formatSeconds } from '../text/command-line.ts'
import type { StopSignal } from './stop-signals.ts'
import { sandboxIdOf } from '../commands/session-id.ts'
import { HintedError } from '../errors/errors.ts'
import {
  EXIT_DETACHED,
  EXIT_FAILURE,
  exitCodeOf,
  exitCodeOfError,
  exitCodeOfSignal,
} from '../errors/exit-code.ts'
import { type Action, hintFor, messageFor } from '../errors/hints.ts'
import type { RunOptions } from '../options/attach-options.ts'
import type { CredentialKind } from '../server/find-server.ts'
import { printable } from '../text/printable.ts'

/** Why this program leaves a session that goes on. */
export type DetachReason = 'escape' | 'SIGPIPE' | StopSignal

/** How it ended. */
export type Outcome =
  /** The process ended; `startFailure` says why it never ran. */
  | { readonly is: 'exited'; readonly exit: Exit; readonly startFailure: SandwireError | undefined }
  | { readonly is: 'left'; readonly why: DetachReason }
  | { readonly is: 'failed'; readonly error: SandwireError }
  /** Standard output failed with this errno. */
  | { readonly is: 'unwritable'; readonly errno: string }

/** A `shutting_down` error, which the server sends before it ends the session. */
export interface StopNotice {
  readonly message: string
  readonly reason: StopReason | undefined
}

export interface OutcomeContext {
  readonly options: Pick<
    RunOptions,
    'typedUrl' | 'sandbox' | 'session' | 'template' | 'role' | 'tokenFile' | 'isQuiet'
  >
  readonly credential: CredentialKind
  /** How this program was called, to be called again. */
  readonly program: string
  /** The server's last notice that it stops the sandbox. */
  readonly stopNotice?: StopNotice | undefined
  /** The session, if there was a welcome. */
  readonly session: { readonly id: string; readonly details: SessionDetails } | undefined
}

/** What is left to say, and the exit code. */
export interface ExitReport {
  readonly code: number
  readonly lines: readonly string[]
}

function reattach({ options, program, session }: OutcomeContext): string | undefined {
  if (session === undefined || session.details.keepSeconds === 0) return undefined
  return reattachCommand(program, options, session.id)
}

/** The sandbox by the name that was typed, or by the id that a session's begins with. */
function sandboxOf({ options: { sandbox, session } }: OutcomeContext): string | undefined {
  if (sandbox !== undefined || session === undefined || !session.includes('.')) return sandbox
  return printable(session.slice(0, session.indexOf('.')))
}

function doingOf({ options: { role, session, template } }: OutcomeContext): Action {
  if (session !== undefined) return role === 'viewer' ? 'watch a session' : 'join a session'
  return template === undefined ? 'start something' : 'start a template'
}

/** How the server speaks of what an option says. */
const PARAMETER = /^Cannot use parameter "([a-z]+)"/

function formatFailure(error: SandwireError, context: OutcomeContext): string[] {
  const { options, credential, program, session } = context
  const advice = hintFor(error.code, {
    action: doingOf(context),
    url: options.typedUrl,
    credential,
    program,
    reattach: reattach(context),
    sandbox: sandboxOf(context),
    urlOption: ` --url ${shellQuote(options.typedUrl)}`,
  })
  const hint = error instanceof HintedError ? error.hint : advice
  const what = session !== undefined && error.code === 'link_lost' ? 'Lost the connection for good: ' : ''
  const message = messageFor(error, credential).replace(PARAMETER, 'Cannot use option "--$1"')
  return [`sbx-stdio: ${what}${printable(message)}`, `hint: ${hint}`]
}

function formatDetach(context: OutcomeContext): string[] {
  const { options, session } = context
  if (session === undefined || options.isQuiet) return []
  const line = reattach(context)
  if (line === undefined) return ['sbx-stdio: detached; the session is not kept']
  return [
    `sbx-stdio: detached; the session is kept for ${formatSeconds(session.details.keepSeconds)}, come back with:`,
    line,
  ]
}

/** Reports that the sandbox was stopped, and what to do about it. */
function formatStopNotice({ message, reason }: StopNotice, context: OutcomeContext): string[] {
  const { options, program, session } = context
  if (reason === 'removed')
    return [`sbx-stdio: ${printable(message)}`, 'hint: its files were removed with it']
  const sandbox = sandboxOf(context) ?? (session === undefined ? undefined : sandboxIdOf(session.id))
  const again =
    sandbox === undefined
      ? 'start it again, then run this again'
      : `start it again: ${program} start ${shellQuote(sandbox)} --url ${shellQuote(options.typedUrl)}`
  const awake =
    reason === 'idle'
      ? '; what runs with --pin keeps it awake, and so does create NAME --sleep-after never'
      : ''
  return [`sbx-stdio: ${printable(message)}`, `hint: ${again}${awake}`]
}

function linesOf(outcome: Exclude<Outcome, { is: 'unwritable' }>, context: OutcomeContext): string[] {
  if (context.stopNotice !== undefined) return formatStopNotice(context.stopNotice, context)
  switch (outcome.is) {
    case 'exited':
      return outcome.startFailure === undefined ? [] : formatFailure(outcome.startFailure, context)
    case 'left':
      return formatDetach(context)
    case 'failed':
      return formatFailure(outcome.error, context)
  }
}

/** Turns an outcome into what the caller of this program gets. */
export function describeOutcome(outcome: Outcome, context: OutcomeContext): ExitReport {
  switch (outcome.is) {
    case 'exited':
      return { code: exitCodeOf(outcome.exit), lines: linesOf(outcome, context) }
    case 'left':
      return {
        code: outcome.why === 'escape' ? EXIT_DETACHED : exitCodeOfSignal(outcome.why),
        lines: linesOf(outcome, context),
      }
    case 'failed':
      return { code: exitCodeOfError(outcome.error), lines: linesOf(outcome, context) }
    case 'unwritable':
      return {
        code: EXIT_FAILURE,
        lines: [`sbx-stdio: Cannot write to stdout: ${outcome.errno}`, 'hint: check where the output goes'],
      }
  }
}
