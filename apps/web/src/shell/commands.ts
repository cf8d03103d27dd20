import { activeTab, shiftTab, stepPane, stepTab } from '../layout/layout.ts'
import type { Parts } from '../state/context.ts'
import { MAX_FONT_SIZE, MIN_FONT_SIZE } from '../state/settings.ts'
import { closePane } from './close-views.ts'
import { isEditingKey, isPageCovered, keyContextOf } from './editing-keys.ts'
import { openTerminal, openTmux, splitTerminal } from './open-terminal.ts'
import { openTui } from '../agents/open-agent.ts'
import { agentTexts } from '../texts/agents.ts'
import { shellTexts } from '../texts/shell.ts'
import { tmuxTexts } from '../texts/tmux.ts'

/** An entry of the command palette, possibly with a shortcut. */
export interface Command {
  readonly id: string
  readonly title: string
  /** `Ctrl+Shift+P`; on a Mac, Ctrl matches Cmd. */
  readonly keys?: string
  /** Hidden from users who have no sandbox to work in. */
  readonly needsSandbox?: boolean
  readonly run: () => void
}

/** All commands, in palette order. */
export function commandsOf(parts: Parts): readonly Command[] {
  const { workbench, terminals, files } = parts
  const { commands: titles } = shellTexts
  const focused = () => activeTab(workbench.layout.get())?.focus
  const hasFile = workbench.layout.get().views[focused() ?? '']?.kind === 'file'
  const zoom = (step: number): void => {
    const { fontSize } = workbench.settings.get()
    const next = step === 0 ? 14 : fontSize + step
    workbench.changeSettings({ fontSize: Math.min(MAX_FONT_SIZE, Math.max(MIN_FONT_SIZE, next)) })
  }
  const panel = (id: string) => (): void => workbench.showPanel(workbench.panel.get() === id ? undefined : id)
  return [
    {
      id: 'commands',
      title: titles.all,
      keys: 'Ctrl+Shift+P',
      run: () => workbench.showOverlay('commands'),
    },
    {
      id: 'files.quickOpen',
      needsSandbox: true,
      title: titles.goToFile,
      keys: 'Ctrl+Shift+O',
      run: () => workbench.showOverlay('files'),
    },
    // The editor handles Ctrl+S itself: in a terminal that key belongs to the shell.
    ...(hasFile
      ? [{ id: 'file.save', title: titles.saveFile, run: () => void files.save(focused() ?? '') }]
      : []),
    {
      id: 'terminal.new',
      needsSandbox: true,
      title: titles.newTerminal,
      keys: 'Ctrl+Shift+`',
      run: () => openTerminal(workbench),
    },
    {
      id: 'agent.terminal',
      needsSandbox: true,
      title: agentTexts.openClaude,
      run: () => openTui(parts, 'claude'),
    },
    { id: 'tmux.open', needsSandbox: true, title: tmuxTexts.open, run: () => openTmux(workbench) },
    {
      id: 'pane.splitRight',
      needsSandbox: true,
      title: titles.splitRight,
      keys: 'Ctrl+Shift+\\',
      run: () => splitTerminal(workbench, 'row'),
    },
    {
      id: 'pane.splitDown',
      needsSandbox: true,
      title: titles.splitDown,
      keys: 'Ctrl+Shift+-',
      run: () => splitTerminal(workbench, 'column'),
    },
    {
      id: 'pane.close',
      title: titles.closePane,
      keys: 'Ctrl+Shift+X',
      run: () => closePane(parts, focused() ?? ''),
    },
    {
      id: 'pane.next',
      title: titles.nextPane,
      keys: 'Ctrl+Shift+ArrowRight',
      run: () => workbench.changeLayout((layout) => stepPane(layout, 1)),
    },
    {
      id: 'pane.previous',
      title: titles.previousPane,
      keys: 'Ctrl+Shift+ArrowLeft',
      run: () => workbench.changeLayout((layout) => stepPane(layout, -1)),
    },
    {
      id: 'tab.next',
      title: titles.nextTab,
      keys: 'Ctrl+Shift+ArrowDown',
      run: () => workbench.changeLayout((layout) => stepTab(layout, 1)),
    },
    {
      id: 'tab.previous',
      title: titles.previousTab,
      keys: 'Ctrl+Shift+ArrowUp',
      run: () => workbench.changeLayout((layout) => stepTab(layout, -1)),
    },
    {
      id: 'tab.rename',
      title: titles.renameTab,
      run: () => workbench.startRename(workbench.layout.get().active),
    },
    {
      id: 'tab.left',
      title: titles.moveTabLeft,
      run: () => workbench.changeLayout((layout) => shiftTab(layout, -1)),
    },
    {
      id: 'tab.right',
      title: titles.moveTabRight,
      run: () => workbench.changeLayout((layout) => shiftTab(layout, 1)),
    },
    {
      id: 'terminal.copy',
      title: titles.copySelection,
      keys: 'Ctrl+Shift+C',
      run: () => void terminals.findIn(focused() ?? '')?.copy(),
    },
    {
      id: 'terminal.find',
      title: titles.findInTerminal,
      keys: 'Ctrl+Shift+G',
      run: () => terminals.openFind(focused()),
    },
    { id: 'view.zoomIn', title: titles.increaseFont, keys: 'Ctrl+Shift+.', run: () => zoom(1) },
    { id: 'view.zoomOut', title: titles.decreaseFont, keys: 'Ctrl+Shift+,', run: () => zoom(-1) },
    { id: 'view.zoomReset', title: titles.resetFont, run: () => zoom(0) },
    { id: 'panel.sandboxes', title: titles.sandboxes, keys: 'Ctrl+Shift+B', run: panel('sandboxes') },
    { id: 'panel.files', needsSandbox: true, title: titles.files, keys: 'Ctrl+Shift+E', run: panel('files') },
    {
      id: 'panel.search',
      needsSandbox: true,
      title: titles.search,
      keys: 'Ctrl+Shift+F',
      run: panel('search'),
    },
    { id: 'panel.git', needsSandbox: true, title: titles.git, keys: 'Ctrl+Shift+Y', run: panel('git') },
    { id: 'panel.agents', needsSandbox: true, title: titles.agents, run: panel('agents') },
    { id: 'panel.versions', needsSandbox: true, title: titles.versions, run: panel('versions') },
    { id: 'usage', title: titles.usage, run: () => workbench.showOverlay('usage') },
    { id: 'settings', title: titles.settings, run: () => workbench.showOverlay('settings') },
    { id: 'keys', title: titles.shortcuts, keys: 'Ctrl+Shift+/', run: () => workbench.showOverlay('keys') },
  ]
}

function isMacHere(): boolean {
  return /Mac|iP(ad|hone)/.test(navigator.platform)
}

/** Formats a shortcut for this platform. */
export function formatKeys(keys: string, isMac = isMacHere()): string {
  const named = keys
    .replace('ArrowRight', '→')
    .replace('ArrowLeft', '←')
    .replace('ArrowDown', '↓')
    .replace('ArrowUp', '↑')
  return isMac ? named.replace('Ctrl+', '⌘').replace('Shift+', '⇧').replace('Alt+', '⌥') : named
}

/** The shortcut of a keyboard event. */
export function keysOf(
  event: Pick<KeyboardEvent, 'ctrlKey' | 'metaKey' | 'shiftKey' | 'altKey' | 'code' | 'key'>,
): string {
  const byCode: Readonly<Record<string, string>> = {
    Backquote: '`',
    Backslash: '\\',
    Minus: '-',
    Period: '.',
    Comma: ',',
    Slash: '/',
  }
  const letter = /^(?:Key|Digit)(.)$/.exec(event.code)?.[1]
  const key = byCode[event.code] ?? letter ?? event.key
  return [
    ...(event.ctrlKey || event.metaKey ? ['Ctrl'] : []),
    ...(event.altKey ? ['Alt'] : []),
    ...(event.shiftKey ? ['Shift'] : []),
    key,
  ].join('+')
}

/** True when keys belong to the focused text. On a Mac, Ctrl combinations in text fields are never shortcuts. */
function isForText(event: KeyboardEvent, keys: string): boolean {
  const context = keyContextOf(event.target)
  return isEditingKey(keys, context) || (context !== 'elsewhere' && event.ctrlKey && isMacHere())
}

/** Handles shortcuts before a terminal sees them, except for keys of text fields and of modal overlays. */
export class Commands {
  readonly #parts: Parts

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Listens until the returned function is called. */
  listen(target: Window): () => void {
    const onKey = (event: KeyboardEvent): void => {
      const keys = keysOf(event)
      const command = commandsOf(this.#parts).find((one) => one.keys === keys)
      if (command === undefined || isForText(event, keys) || isPageCovered(target.document)) return
      event.preventDefault()
      event.stopPropagation()
      command.run()
    }
    target.addEventListener('keydown', onKey, true)
    return () => target.removeEventListener('keydown', onKey, true)
  }
}
