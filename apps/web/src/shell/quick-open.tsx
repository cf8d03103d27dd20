import { useStore } from '@sandwire/react'
import { type ReactElement, useEffect, useState } from 'react'
import { findFiles } from '../api/search.ts'
import { shownName } from '../files/shown-name.ts'
import { reveal } from '../layout/layout.ts'
import { useParts } from '../state/context.ts'
import { messageOf } from '../state/workbench.ts'
import { fuzzyFilter } from './fuzzy.ts'
import { Picker } from './picker.tsx'
import { baseName } from './view-title.ts'
import { shellTexts } from '../texts/shell.ts'

const SETTLE_MS = 120

interface Found {
  readonly paths: readonly string[]
  readonly status: string
}

/** Files of a sandbox whose names hold what was typed. */
function useFound(sandbox: string | undefined, typed: string): Found {
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
export function QuickOpen({ onClose }: { readonly onClose: () => void }): ReactElement {
  const { workbench } = useParts()
  const sandbox = useStore(workbench.current)
  const [typed, setTyped] = useState('')
  const { paths, status } = useFound(sandbox, typed)
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
        label: shownName(baseName(path)),
        note: shownName(path),
        run: () => {
          if (sandbox === undefined) return
          workbench.changeLayout((layout) => reveal(layout, { kind: 'file', sandbox, path }, workbench.mint))
        },
      }))}
    />
  )
}
