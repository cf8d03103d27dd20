import { printable, useStore } from '@sandwire/react'
import { type ReactElement, useCallback, useEffect } from 'react'
import { searchFiles } from '../api/search.ts'
import { displayName } from '../files/display-name.ts'
import { reveal } from '../layout/layout.ts'
import { usePanelMemory } from '../panels/panel-memory.ts'
import { SandboxGate } from '../panels/sandbox-gate.tsx'
import { useParts } from '../state/context.ts'
import { sandboxTexts } from '../texts/sandboxes.ts'
import { searchTexts } from '../texts/search.ts'
import { aroundMatch, type FileMatches, partsOf } from './group-matches.ts'
import { Search, type SearchResult } from './search.ts'

/** Delay after the last key press before a search starts. */
const SETTLE_MS = 250

/** Searches the files of the selected sandbox. */
export function SearchPanel(): ReactElement {
  return (
    <SandboxGate action={sandboxTexts.gate.search}>
      {(sandbox) => <SearchIn key={sandbox} sandbox={sandbox} />}
    </SandboxGate>
  )
}

/** The search of a sandbox, remembered while the panel is hidden. */
function useSearch(sandbox: string): Search {
  const search = usePanelMemory().searches.getOrCreate(
    sandbox,
    () =>
      new Search(
        (query, signal) => searchFiles(sandbox, query, signal),
        (run) => {
          const timer = setTimeout(run, SETTLE_MS)
          return () => clearTimeout(timer)
        },
      ),
  )
  useEffect(() => search.resume(), [search])
  return search
}

function outcomeText({ outcome, groups }: SearchResult): string {
  const matches = groups.reduce((sum, group) => sum + group.matches.length, 0)
  switch (outcome.kind) {
    case 'idle':
      return ''
    case 'searching':
      return matches === 0 ? searchTexts.searching : searchTexts.soFar(matches)
    case 'failed':
      return outcome.message
    case 'done': {
      if (matches === 0) return searchTexts.none
      const isCut = outcome.end === undefined || outcome.end.truncated !== false
      return `${searchTexts.results(matches, groups.length)}${isCut ? searchTexts.moreNotShown : ''}`
    }
  }
}

function SearchIn({ sandbox }: { readonly sandbox: string }): ReactElement {
  const search = useSearch(sandbox)
  const { q, glob, isRegex, isCaseSensitive, includesHiddenAndIgnored } = useStore(search.form)
  const result = useStore(search.result)
  return (
    <>
      <header className="panel-head">
        <h2>{searchTexts.title}</h2>
      </header>
      <div className="search-form" role="search">
        <input
          autoFocus
          aria-label={searchTexts.query}
          placeholder={searchTexts.query}
          value={q}
          spellCheck={false}
          onChange={(event) => search.change({ q: event.target.value })}
        />
        <input
          aria-label={searchTexts.include}
          placeholder={searchTexts.includePlaceholder}
          value={glob}
          spellCheck={false}
          onChange={(event) => search.change({ glob: event.target.value })}
        />
        <div className="search-options">
          <Toggle
            label={searchTexts.regex}
            short=".*"
            isOn={isRegex}
            onToggle={(isOn) => search.change({ isRegex: isOn })}
          />
          <Toggle
            label={searchTexts.matchCase}
            short="Aa"
            isOn={isCaseSensitive}
            onToggle={(isOn) => search.change({ isCaseSensitive: isOn })}
          />
          <Toggle
            label={searchTexts.all}
            short="all"
            isOn={includesHiddenAndIgnored}
            onToggle={(isOn) => search.change({ includesHiddenAndIgnored: isOn })}
          />
          <span role="status" className={result.outcome.kind === 'failed' ? 'problem' : 'dim'}>
            {outcomeText(result)}
          </span>
        </div>
      </div>
      <Found sandbox={sandbox} search={search} groups={result.groups} />
    </>
  )
}

/** The matches by file, with the scroll position restored. */
function Found({
  sandbox,
  search,
  groups,
}: {
  readonly sandbox: string
  readonly search: Search
  readonly groups: readonly FileMatches[]
}): ReactElement {
  const { workbench } = useParts()
  const scroll = useCallback(
    (element: HTMLElement | null) => {
      if (element !== null) element.scrollTop = search.scrollPx
    },
    [search],
  )
  const open = (path: string, line: number): void =>
    workbench.changeLayout((layout) => reveal(layout, { kind: 'file', sandbox, path, line }, workbench.mint))
  return (
    <div
      ref={scroll}
      className="found-list"
      onScroll={({ currentTarget }) => {
        search.scrollPx = currentTarget.scrollTop
      }}
    >
      {groups.map(({ path, matches }) => (
        <section key={path} className="found" aria-label={displayName(path)}>
          <h3 title={displayName(path)}>{displayName(path)}</h3>
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
    </div>
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
