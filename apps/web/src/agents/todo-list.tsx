import type { ReactElement } from 'react'
import { agentTexts } from '../texts/agents.ts'
import type { TranscriptState } from './transcript.ts'

const { run: texts } = agentTexts

/** The agent's own list of what it does. */
export function TodoList({ todo, active }: Pick<TranscriptState, 'todo' | 'active'>): ReactElement | null {
  if (todo.length === 0) return null
  const done = todo.filter(({ status }) => status === 'completed').length
  return (
    <details className="todo" open>
      <summary>
        {texts.todo} <span className="dim">{texts.todoDone(done, todo.length)}</span>
        {active !== undefined && <span className="dim"> · {active}</span>}
      </summary>
      <ul>
        {todo.map(({ id, content, status }) => (
          <li key={id} className={status}>
            <input type="checkbox" checked={status === 'completed'} disabled aria-label={content} />
            {content}
          </li>
        ))}
      </ul>
    </details>
  )
}
