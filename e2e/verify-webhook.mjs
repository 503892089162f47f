// Reports for each line of {secret, headers, body} whether the npm package
// standardwebhooks accepts it.
import { createInterface } from 'node:readline';
import { Webhook } from 'standardwebhooks';

for await (const line of createInterface({ input: process.stdin })) {
  const { secret, headers, body } = JSON.parse(line);
  try {
    new Webhook(secret).verify(body, headers);
    console.log('good');
  } catch (e) {
    console.log(e.message);
  }
}
