import { useStore } from '@sandwire/react'
import { type ReactElement, useEffect, useState } from 'react'
import { findFiles } from '../api/search.ts'
import { displayName } from '../files/display-name.ts'
import type { FileChoice } from '../files/open-from-terminal.ts'
import { reveal } from '../layout/layout.ts'
import { useParts } from '../state/context.ts'
import { useCanWork } from '../state/rights.ts'
import { messageOf } from '../state/workbench.ts'
import { fileTexts } from '../texts/files.ts'
import { shellTexts } from '../texts/shell.ts'
import { type Command, commandsOf, formatKeys } from './commands.ts'
import { Dialog } from './dialog.tsx'
import { isEditingKey } from './editing-keys.ts'
import { fuzzyFilter } from './fuzzy.ts'
import { Picker } from './picker.tsx'
import { SettingsDialog } from './settings-dialog.tsx'
import { baseName } from './titles.ts'
import { UsageDialog } from './usage-dialog.tsx'

/** The open overlay. */
export function Overlays(): ReactElement | null {
  const { workbench, terminals } = useParts()
  const overlay = useStore(workbench.overlay)
  const choice = useStore(terminals.choosing)
  const close = (): void => {
    workbench.showOverlay(undefined)
    terminals.focusActive()
  }
  if (choice !== undefined) return <FileChooser choice={choice} onClose={() => terminals.endChoice()} />
  switch (overlay) {
    case undefined:
      return null
    case 'commands':
      return <CommandPalette onClose={close} />
    case 'files':
      return <QuickOpen onClose={close} />
    case 'keys':
      return <ShortcutSheet onClose={close} />
    case 'settings':
      return <SettingsDialog onClose={close} />
    case 'usage':
      return <UsageDialog onClose={close} />
  }
}

/** The command palette. */
function CommandPalette({ onClose }: { readonly onClose: () => void }): ReactElement {
  const [typed, setTyped] = useState('')
  const others = useCommands().filter(({ id }) => id !== 'commands')
  const commands = fuzzyFilter(others, typed, ({ title }) => title)
  return (
    <Picker
      title={shellTexts.palette.title}
      placeholder={shellTexts.palette.placeholder}
      typed={typed}
      status={shellTexts.palette.none}
      onType={setTyped}
      onClose={onClose}
      picks={commands.map(({ id, title, keys, run }) => ({
        id,
        run,
        label: title,
        ...(keys === undefined ? {} : { note: formatKeys(keys) }),
      }))}
    />
  )
}

const SETTLE_MS = 120

interface Found {
  readonly paths: readonly string[]
  readonly status: string
}

/** Files of a sandbox whose names match the typed text. */
function useFileSearch(sandbox: string | undefined, typed: string): Found {
  const [found, setFound] = useState<Found>({ paths: [], status: shellTexts.quickOpen.typeName })
  useEffect(() => {
    const text = typed.trim()
    if (sandbox === undefined) return setFound({ paths: [], status: shellTexts.quickOpen.selectSandbox })
    if (text === '') return setFound({ paths: [], status: shellTexts.quickOpen.typeName })
    const aborter = new AbortController()
    const find = async (): Promise<void> => {
      try {
        const { results } = await findFiles(sandbox, baseName(text), aborter.signal)
        const paths = results.filter(({ kind }) => kind !== 'folder').map(({ path }) => path)
        setFound({ paths: fuzzyFilter(paths, text, (path) => path), status: shellTexts.quickOpen.none })
      } catch (caught) {
        if (!aborter.signal.aborted) setFound({ paths: [], status: messageOf(caught) })
      }
    }
    const timer = setTimeout(() => void find(), SETTLE_MS)
    return () => {
      clearTimeout(timer)
      aborter.abort()
    }
  }, [sandbox, typed])
  return found
}

/** Opens a file by a part of its name. */
function QuickOpen({ onClose }: { readonly onClose: () => void }): ReactElement {
  const { workbench } = useParts()
  const sandbox = useStore(workbench.current)
  const [typed, setTyped] = useState('')
  const { paths, status } = useFileSearch(sandbox, typed)
  return (
    <Picker
      title={shellTexts.quickOpen.title}
      placeholder={shellTexts.quickOpen.placeholder}
      typed={typed}
      status={status}
      onType={setTyped}
      onClose={onClose}
      picks={paths.map((path) => ({
        id: path,
        label: displayName(baseName(path)),
        note: displayName(path),
        run: () => {
          if (sandbox === undefined) return
          workbench.changeLayout((layout) => reveal(layout, { kind: 'file', sandbox, path }, workbench.mint))
        },
      }))}
    />
  )
}

/** The list of keyboard shortcuts. */
function ShortcutSheet({ onClose }: { readonly onClose: () => void }): ReactElement {
  const commands = useCommands().filter(({ keys }) => keys !== undefined)
  return (
    <Dialog title={shellTexts.shortcuts.title} onClose={onClose}>
      <dl className="shortcuts">
        {commands.map(({ id, title, keys = '' }) => (
          <div key={id}>
            <dt>
              {title}
              {isEditingKey(keys, 'editor') && (
                <small className="dim">{shellTexts.shortcuts.notInEditor}</small>
              )}
            </dt>
            <dd>
              <kbd>{formatKeys(keys)}</kbd>
            </dd>
          </div>
        ))}
        <div>
          <dt>{shellTexts.shortcuts.saveFile}</dt>
          <dd>
            <kbd>{formatKeys('Ctrl+S')}</kbd>
          </dd>
        </div>
        <div>
          <dt>{shellTexts.shortcuts.paste}</dt>
          <dd>
            <kbd>{formatKeys('Ctrl+Shift+V')}</kbd>
          </dd>
        </div>
        <div>
          <dt>{shellTexts.shortcuts.openPath}</dt>
          <dd>
            <kbd>{formatKeys('Ctrl+Click')}</kbd>
          </dd>
        </div>
      </dl>
    </Dialog>
  )
}

/** The commands available to the user. */
function useCommands(): readonly Command[] {
  const hasSandbox = useCanWork()
  return commandsOf(useParts()).filter(({ needsSandbox = false }) => hasSandbox || !needsSandbox)
}

/** Chooses among several files that a path in a terminal may mean. */
function FileChooser({
  choice,
  onClose,
}: {
  readonly choice: FileChoice
  readonly onClose: () => void
}): ReactElement {
  const [typed, setTyped] = useState('')
  const paths = fuzzyFilter(choice.paths, typed, (path) => path)
  return (
    <Picker
      title={fileTexts.fromTerminal.chooseTitle}
      placeholder={fileTexts.fromTerminal.several}
      typed={typed}
      status={fileTexts.fromTerminal.none}
      onType={setTyped}
      onClose={onClose}
      picks={paths.map((path) => ({
        id: path,
        label: displayName(baseName(path)),
        note: displayName(path),
        run: () => choice.open(path),
      }))}
    />
  )
}
