import type { SessionDetails } from '@sandwire/client'
import type { Exit, SandwireError, StopReason } from '@sandwire/protocol'
import { shellQuote } from '@sandwire/shell-quote'
import { reattachCommand, formatSeconds } from '../text/command-line.ts'
import type { TerminationSignal } from './termination-signals.ts'
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

/** Why the CLI detached from a running session. */
export type DetachReason = 'escape' | 'SIGPIPE' | TerminationSignal

/** How the attachment ended. */
export type Outcome =
  /** The process ended; `startFailure` is the reason if it could not be started. */
  | { readonly kind: 'exited'; readonly exit: Exit; readonly startFailure: SandwireError | undefined }
  | { readonly kind: 'detached'; readonly reason: DetachReason }
  | { readonly kind: 'failed'; readonly error: SandwireError }
  /** Standard output failed with this errno. */
  | { readonly kind: 'unwritable'; readonly errno: string }

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
  /** How the user calls this program. */
  readonly program: string
  /** The last notice of the server that it stops the sandbox. */
  readonly stopNotice?: StopNotice | undefined
  /** Undefined if the attachment never succeeded. */
  readonly session: { readonly id: string; readonly details: SessionDetails } | undefined
}

/** The exit code, and the lines to print to stderr. */
export interface ExitReport {
  readonly code: number
  readonly lines: readonly string[]
}

function reattachCommandFor({ options, program, session }: OutcomeContext): string | undefined {
  if (session === undefined || session.details.keepSeconds === 0) return undefined
  return reattachCommand(program, options, session.id)
}

/** The sandbox by its given name, or by the id in the session id. */
function sandboxOf({ options: { sandbox, session } }: OutcomeContext): string | undefined {
  if (sandbox !== undefined || session === undefined || !session.includes('.')) return sandbox
  return printable(session.slice(0, session.indexOf('.')))
}

function actionOf({ options: { role, session, template } }: OutcomeContext): Action {
  if (session !== undefined) return role === 'viewer' ? 'watch a session' : 'join a session'
  return template === undefined ? 'start a command' : 'start a template'
}

function formatFailure(error: SandwireError, context: OutcomeContext): string[] {
  const { options, credential, program, session } = context
  const hint = hintFor(error.code, {
    action: actionOf(context),
    url: options.typedUrl,
    credential,
    program,
    reattach: reattachCommandFor(context),
    sandbox: sandboxOf(context),
    urlOption: ` --url ${shellQuote(options.typedUrl)}`,
  })
  const prefix = session !== undefined && error.code === 'link_lost' ? 'Connection lost: ' : ''
  return [
    `sbx-stdio: ${prefix}${printable(messageFor(error, credential))}`,
    `hint: ${error instanceof HintedError ? error.hint : hint}`,
  ]
}

function formatDetach(context: OutcomeContext): string[] {
  const { options, session } = context
  if (session === undefined || options.isQuiet) return []
  const command = reattachCommandFor(context)
  if (command === undefined) return ['sbx-stdio: detached; the session ends']
  return [
    `sbx-stdio: detached; the session is kept for ${formatSeconds(session.details.keepSeconds)}, reattach with:`,
    command,
  ]
}

/** Reports that the sandbox was stopped, and how to start it again. */
function formatStopNotice({ message, reason }: StopNotice, context: OutcomeContext): string[] {
  const { options, program, session } = context
  if (reason === 'removed')
    return [`sbx-stdio: ${printable(message)}`, 'hint: its files were removed as well']
  const sandbox = sandboxOf(context) ?? (session === undefined ? undefined : sandboxIdOf(session.id))
  const again =
    sandbox === undefined
      ? 'start the sandbox, then run this again'
      : `start it again: ${program} start ${shellQuote(sandbox)} --url ${shellQuote(options.typedUrl)}`
  const keepRunning =
    reason === 'idle' ? '; --pin keeps it running, and so does create NAME --sleep-after never' : ''
  return [`sbx-stdio: ${printable(message)}`, `hint: ${again}${keepRunning}`]
}

function linesOf(outcome: Exclude<Outcome, { kind: 'unwritable' }>, context: OutcomeContext): string[] {
  if (context.stopNotice !== undefined) return formatStopNotice(context.stopNotice, context)
  switch (outcome.kind) {
    case 'exited':
      return outcome.startFailure === undefined ? [] : formatFailure(outcome.startFailure, context)
    case 'detached':
      return formatDetach(context)
    case 'failed':
      return formatFailure(outcome.error, context)
  }
}

/** Turns an outcome into an exit code and messages. */
export function describeOutcome(outcome: Outcome, context: OutcomeContext): ExitReport {
  switch (outcome.kind) {
    case 'exited':
      return { code: exitCodeOf(outcome.exit), lines: linesOf(outcome, context) }
    case 'detached':
      return {
        code: outcome.reason === 'escape' ? EXIT_DETACHED : exitCodeOfSignal(outcome.reason),
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
