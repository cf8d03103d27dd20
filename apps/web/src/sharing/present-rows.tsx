import type { ReactElement } from 'react'
import { type Somebody, whatTheyDo, whoTheyAre } from './people.ts'

/** Everybody who is in a terminal now. */
export function PresentRows({ people }: { readonly people: readonly Somebody[] }): ReactElement {
  return (
    <section>
      <h3 className="dim">Here now</h3>
      <ul className="rows bordered" aria-label="Here now">
        {people.map((person) => (
          <li key={person.id} className="row">
            <span className="row-text">
              {whoTheyAre(person)}
              <small>{whatTheyDo(person)}</small>
            </span>
          </li>
        ))}
      </ul>
    </section>
  )
}
