import { printable } from '@sandwire/react'
import { type ReactElement, useEffect, useRef, useState } from 'react'
import { inFormWords } from '../api/form-words.ts'
import { type SearchEnd, searchFiles, type SearchWish } from '../api/search.ts'
import { shownName } from '../files/shown-name.ts'
import { reveal } from '../layout/layout.ts'
import { SandboxGate } from '../panels/sandbox-gate.tsx'
import { useParts } from '../state/context.ts'
import { messageOf } from '../state/workbench.ts'
import { addMatch, aroundMatch, type FileMatches, partsOf } from './group-matches.ts'

/** Typing settles for so long before a search begins. */
const SETTLE_MS = 250
/** What the fields are called, for refusals that name them as the server does. */
const WORDS = { q: 'Cannot search for this', glob: 'Cannot use what is in “Only in”' }
/** Lines that are drawn at most. */
const MAX_SHOWN = 2_000

type Outcome =
  | { readonly is: 'idle' }
  | { readonly is: 'searching' }
  | { readonly is: 'done'; readonly end: SearchEnd | undefined }
  | { readonly is: 'failed'; readonly message: string }

/** Looks in the contents of the chosen sandbox's files. */
export function SearchPanel(): ReactElement {
  return <SandboxGate what="its files">{(sandbox) => <Search key={sandbox} sandbox={sandbox} />}</SandboxGate>
}

/** Searches whenever the wish changes, and ends the search before it. */
function useSearch(sandbox: string, wish: SearchWish): readonly [readonly FileMatches[], Outcome] {
  const [groups, setGroups] = useState<readonly FileMatches[]>([])
  const [outcome, setOutcome] = useState<Outcome>({ is: 'idle' })
  const key = JSON.stringify(wish)
  const latest = useRef(wish)
  latest.current = wish
  useEffect(() => {
    const aborter = new AbortController()
    const run = async (): Promise<void> => {
      setGroups([])
      if (latest.current.q === '') return setOutcome({ is: 'idle' })
      setOutcome({ is: 'searching' })
      let found: readonly FileMatches[] = []
      let end: SearchEnd | undefined
      let shown = 0
      try {
        for await (const event of searchFiles(sandbox, latest.current, aborter.signal)) {
          if (event.type === 'end') end = event
          else {
            found = addMatch(found, event)
            shown += 1
            // Often enough to be seen to grow, seldom enough to cost nothing.
            if (shown < 20 || shown % 50 === 0) setGroups(found)
            if (shown >= MAX_SHOWN) break
          }
        }
        setGroups(found)
        setOutcome({ is: 'done', end })
      } catch (caught) {
        if (!aborter.signal.aborted)
          setOutcome({ is: 'failed', message: inFormWords(messageOf(caught), WORDS) })
      }
    }
    const timer = setTimeout(() => void run(), SETTLE_MS)
    return () => {
      clearTimeout(timer)
      aborter.abort()
    }
  }, [sandbox, key])
  return [groups, outcome]
}

function outcomeText(outcome: Outcome, groups: readonly FileMatches[]): string {
  const matches = groups.reduce((sum, group) => sum + group.matches.length, 0)
  switch (outcome.is) {
    case 'idle':
      return ''
    case 'searching':
      return matches === 0 ? 'Searching…' : `Searching… ${matches} so far`
    case 'failed':
      return outcome.message
    case 'done': {
      if (matches === 0) return 'Nothing found'
      const isCut = outcome.end === undefined || outcome.end.truncated !== false
      return `${matches} in ${groups.length} ${groups.length === 1 ? 'file' : 'files'}${isCut ? ', and more that are not shown' : ''}`
    }
  }
}

function Search({ sandbox }: { readonly sandbox: string }): ReactElement {
  const { workbench } = useParts()
  const [q, setQ] = useState('')
  const [isRegex, setRegex] = useState(false)
  const [isCased, setCased] = useState(false)
  const [glob, setGlob] = useState('')
  const [isAll, setAll] = useState(false)
  const [groups, outcome] = useSearch(sandbox, {
    q,
    regex: isRegex,
    case: isCased ? 'sensitive' : 'insensitive',
    glob: glob.split(/[\s,]+/).filter((text) => text !== ''),
    hidden: isAll,
    ignored: isAll,
  })
  const open = (path: string, line: number): void =>
    workbench.changeLayout((layout) => reveal(layout, { kind: 'file', sandbox, path, line }, workbench.mint))
  return (
    <>
      <header className="panel-head">
        <h2>Search</h2>
      </header>
      <div className="search-form" role="search">
        <input
          autoFocus
          aria-label="Search in files"
          placeholder="Search in files"
          value={q}
          spellCheck={false}
          onChange={(event) => setQ(event.target.value)}
        />
        <input
          aria-label="Only in files like"
          placeholder="Only in, such as *.ts, src/**, !*.test.ts"
          value={glob}
          spellCheck={false}
          onChange={(event) => setGlob(event.target.value)}
        />
        <div className="search-options">
          <Toggle label="Regular expression" short=".*" isOn={isRegex} onToggle={setRegex} />
          <Toggle label="Match case" short="Aa" isOn={isCased} onToggle={setCased} />
          <Toggle label="All files: hidden and ignored ones too" short="all" isOn={isAll} onToggle={setAll} />
          <span role="status" className={outcome.is === 'failed' ? 'trouble' : 'dim'}>
            {outcomeText(outcome, groups)}
          </span>
        </div>
      </div>
      {groups.map(({ path, matches }) => (
        <section key={path} className="found" aria-label={shownName(path)}>
          <h3 title={shownName(path)}>{shownName(path)}</h3>
          {matches.map((match) => (
            <button
              key={match.line}
              type="button"
              className="found-line"
              onClick={() => open(path, match.line)}
            >
              <span className="found-number">{match.line}</span>
              <span className="found-text">
                {partsOf(aroundMatch(match)).map(({ text, isMatch }, at) =>
                  isMatch ? (
                    <mark key={at}>{printable(text)}</mark>
                  ) : (
                    <span key={at}>{text.replaceAll(/\p{C}/gu, ' ')}</span>
                  ),
                )}
              </span>
            </button>
          ))}
        </section>
      ))}
    </>
  )
}

function Toggle({
  label,
  short,
  isOn,
  onToggle,
}: {
  readonly label: string
  readonly short: string
  readonly isOn: boolean
  readonly onToggle: (isOn: boolean) => void
}): ReactElement {
  return (
    <button
      type="button"
      className="toggle"
      title={label}
      aria-label={label}
      aria-pressed={isOn}
      onClick={() => onToggle(!isOn)}
    >
      {short}
    </button>
  )
}
