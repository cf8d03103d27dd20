import { createStore, type Store } from '@sandwire/client'
import {
  type Appearance,
  type AttachRequest,
  DARK,
  DEFAULT_APPEARANCE,
  type FileLocation,
  LIGHT,
  type RiskyPaste,
  type SuspiciousLink,
  TerminalController,
  type TerminalState,
} from '@sandwire/react'
import type { FileChoice } from '../files/open-from-terminal.ts'
import { activeTab, changeView, type View } from '../layout/layout.ts'
import { controlActionOf } from '../sharing/participants.ts'
import type { Settings } from '../state/settings.ts'
import type { Workbench } from '../state/workbench.ts'
import { Bells } from './bells.ts'
import { OpenSessions } from './open-sessions.ts'
import { ticketForTerminal } from './ticket.ts'

type TerminalView = Extract<View, { kind: 'terminal' }> & {
  /** A pane of tmux instead of a shell. */
  readonly pane?: string
}

/** A pane of tmux, and its size. */
interface PaneTarget {
  readonly sandbox: string
  readonly pane: string
  readonly size: { readonly cols: number; readonly rows: number }
}

/** Key of a pane's terminal; ids of views have no slash. */
const paneKey = (viewId: string, pane: string): string => `${viewId}/${pane}`

/** A pending confirmation. */
interface Question<T> {
  readonly subject: T
  readonly answer: (isYes: boolean) => void
}

/** A command with its arguments. */
export interface FirstCommand {
  readonly cmd: string
  readonly args: readonly string[]
}

type Questions<T> = ReturnType<typeof createStore<Question<T> | undefined>>

interface TerminalsOptions {
  /** Opens a file; returns the candidates when there are several. */
  readonly openFile: (sandbox: string, view: FileLocation) => Promise<FileChoice | undefined>
  readonly isDark: () => boolean
}

/** The terminals of all panes. They live as long as the pane, not the component. */
export class Terminals {
  readonly #workbench: Workbench
  readonly #events: TerminalsOptions
  readonly #terminals = new Map<string, TerminalController>()
  /** What is known of the sessions of all terminals. */
  readonly sessions = new OpenSessions()
  readonly bells = new Bells()
  readonly #pasting = createStore<Question<RiskyPaste> | undefined>(undefined)
  readonly #leaving = createStore<Question<SuspiciousLink> | undefined>(undefined)
  #firstCommand: FirstCommand | undefined
  readonly #finding = createStore<string | undefined>(undefined)
  readonly #choosing = createStore<FileChoice | undefined>(undefined)

  constructor(workbench: Workbench, events: TerminalsOptions) {
    this.#workbench = workbench
    this.#events = events
    workbench.layout.subscribe((layout) => {
      this.#drop((key) => Object.hasOwn(layout.views, key.split('/')[0] ?? ''))
      this.bells.seen(layout)
    })
    workbench.settings.subscribe(() => this.redraw())
  }

  /** The pending confirmation of a paste. */
  get pasting(): Store<Question<RiskyPaste> | undefined> {
    return this.#pasting
  }

  /** The pending confirmation of a link. */
  get leaving(): Store<Question<SuspiciousLink> | undefined> {
    return this.#leaving
  }

  /** The pane whose find bar is open. */
  get finding(): Store<string | undefined> {
    return this.#finding
  }

  openFind(viewId: string | undefined): void {
    this.#finding.set(viewId)
  }

  /** The candidates for a clicked path. */
  get choosing(): Store<FileChoice | undefined> {
    return this.#choosing
  }

  endChoice(): void {
    this.#choosing.set(undefined)
  }

  /** The terminal of a pane, created on first use. */
  of(viewId: string, view: TerminalView): TerminalController {
    const known = this.#terminals.get(viewId)
    if (known !== undefined) return known
    const controller = this.#create(viewId, view)
    this.#terminals.set(viewId, controller)
    controller.state.subscribe((state) => this.#remember(viewId, state))
    controller.state.subscribe(() => this.#updateSessions())
    onRevoked(controller, () => void this.#workbench.recheckUser())
    if (view.hadControl === true) resumeControl(controller)
    return controller
  }

  /** The terminal of a pane of tmux that a view shows. */
  ofPane(viewId: string, target: PaneTarget): TerminalController {
    return this.of(paneKey(viewId, target.pane), { kind: 'terminal', ...target })
  }

  /** Drops the terminals of panes that a view no longer shows. The first one is the one that commands use. */
  keepPanes(viewId: string, panes: readonly string[]): void {
    const kept = new Set(panes.map((pane) => paneKey(viewId, pane)))
    this.#drop((key) => !key.startsWith(`${viewId}/`) || kept.has(key))
  }

  /** The command that the next new terminal runs instead of a shell. */
  startFirst(command: FirstCommand): void {
    this.#firstCommand = command
  }

  find(viewId: string): TerminalController | undefined {
    return this.#terminals.get(viewId)
  }

  /** The terminal of a view, or the focused one of the panes of tmux that it shows. */
  findIn(viewId: string): TerminalController | undefined {
    const own = this.#terminals.get(viewId)
    if (own !== undefined) return own
    const panes = [...this.#terminals].filter(([key]) => key.startsWith(`${viewId}/`))
    return (panes.find(([, { surface }]) => surface.isFocused) ?? panes[0])?.[1]
  }

  /** Focuses the active terminal. */
  focusActive(): void {
    this.findIn(activeTab(this.#workbench.layout.get())?.focus ?? '')?.surface.focus()
  }

  /** Detaches all terminals, so that the server need not wait for a closed page. */
  leave(): void {
    for (const terminal of this.#terminals.values()) terminal.handle?.detach()
  }

  /** Applies the current settings to all terminals. */
  redraw(): void {
    for (const terminal of this.#terminals.values()) terminal.surface.setAppearance(this.#appearance())
  }

  #create(viewId: string, view: TerminalView): TerminalController {
    const { sandbox, session, size } = view
    const settings = this.#workbench.settings
    const first = session === undefined ? this.#firstCommand : undefined
    if (session === undefined) this.#firstCommand = undefined
    const controller: TerminalController = new TerminalController({
      url: new URL('/attach', location.origin),
      request: shellRequest(view, first),
      getTicket: (request) => ticketForTerminal(request, (name) => this.#workbench.mightExist(name)),
      appearance: this.#appearance(),
      ...(size === undefined ? {} : { size }),
      get allowsClipboardWrite() {
        return settings.get().allowsClipboardWrite
      },
      get copiesOnSelect() {
        return settings.get().copiesOnSelect
      },
      get asksBeforePaste() {
        return settings.get().asksBeforePaste
      },
      confirmPaste: (paste) => confirm(this.#pasting, paste),
      confirmLink: (link) => confirm(this.#leaving, link),
      onOpenFile: (view) =>
        void this.#events.openFile(sandbox, view).then((choice) => this.#choosing.set(choice)),
      onBell: () => {
        if (settings.get().bell === 'none') return
        controller.surface.flash()
        this.bells.ring(this.#workbench.layout.get(), viewId)
      },
    })
    return controller
  }

  #appearance(): Appearance {
    return terminalAppearance(this.#workbench.settings.get(), this.#events.isDark())
  }

  #remember(viewId: string, { session, role, cols, rows }: TerminalState): void {
    const view = this.#workbench.layout.get().views[viewId]
    if (view?.kind !== 'terminal' || session === undefined || role === undefined) return
    const hadControl = role === 'driver'
    const isSameSize = view.size?.cols === cols && view.size.rows === rows
    if (view.session === session && view.hadControl === hadControl && isSameSize) return
    this.#workbench.changeLayout((layout) =>
      changeView(layout, viewId, (old) => ({ ...old, session, hadControl, size: { cols, rows } })),
    )
    // Starting a shell may have created or started the sandbox.
    if (view.session !== session) void this.#workbench.refreshSandboxes()
  }

  #updateSessions(): void {
    this.sessions.update(Array.from(this.#terminals.values(), ({ state }) => state.get()))
  }

  #drop(isKept: (key: string) => boolean): void {
    for (const [key, terminal] of this.#terminals) {
      if (isKept(key)) continue
      this.#terminals.delete(key)
      terminal.dispose()
    }
    this.#updateSessions()
  }
}

/** Asks for one confirmation at a time; a pending one is declined. */
function confirm<T>(questions: Questions<T>, subject: T): Promise<boolean> {
  questions.get()?.answer(false)
  return new Promise((resolve) => {
    questions.set({
      subject,
      answer: (isYes) => {
        questions.set(undefined)
        resolve(isYes)
      },
    })
  })
}

/** Calls back when a terminal loses its authorization, as all do when the user signs out. */
function onRevoked(controller: TerminalController, onRevocation: () => void): void {
  controller.state.subscribe(({ status }) => {
    if (status.kind === 'failed' && ['revoked', 'unauthorized'].includes(status.error.code)) onRevocation()
  })
}

/** Takes control again after a reload, if nobody else has it. */
function resumeControl(controller: TerminalController): void {
  const stop = controller.state.subscribe((state) => {
    if (state.status.kind !== 'attached' || (state.role !== 'driver' && state.presence === undefined)) return
    stop()
    if (controlActionOf(state) === 'take') controller.handle?.take()
  })
}

/** The complete appearance, so that settings which were reset return to their default. */
export function terminalAppearance(
  { fontSize, fontFamily, screenReader }: Settings,
  isDark: boolean,
): Appearance {
  return {
    ...DEFAULT_APPEARANCE,
    palette: isDark ? DARK : LIGHT,
    fontSize,
    screenReader,
    ...(fontFamily === '' ? {} : { fontFamily: `${fontFamily}, monospace` }),
  }
}

/** How long a shell is kept for a closed page: 12 hours. */
const KEEP_SECONDS = 12 * 60 * 60

/** The attach request of a terminal: its session, a command, or a shell. */
export function shellRequest(
  { sandbox, session, cwd, pane }: TerminalView,
  command?: FirstCommand,
): AttachRequest {
  if (session !== undefined) return { sandbox, session }
  if (pane !== undefined) return { sandbox, pane, create: false }
  return { sandbox, keepSeconds: KEEP_SECONDS, ...(cwd === undefined ? {} : { cwd }), ...command }
}
