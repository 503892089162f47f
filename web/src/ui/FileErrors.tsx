import { Mono } from './Mono'
import { Section } from './Page'

// FileErrors lists the errors in files that the server has read.
export function FileErrors({ problems }: { problems: string[] }) {
  return (
    <Section title="Files with errors">
      <ul className="flex flex-col gap-2">
        {problems.map((problem) => (
          <li key={problem}>
            <Mono block className="border border-failed">
              {problem}
            </Mono>
          </li>
        ))}
      </ul>
    </Section>
  )
}
