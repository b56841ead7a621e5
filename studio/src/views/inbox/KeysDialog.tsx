import { inbox } from "../../text/inbox.ts";
import { text as page } from "../../text/index.ts";
import { Button } from "../../ui/Button.tsx";
import { Dialog } from "../../ui/Dialog.tsx";
import { turnKeys, useKeysOn } from "./useKeys.ts";

const text = inbox.keys;

export default function KeysDialog({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const isOn = useKeysOn();
  return (
    <Dialog title={text.title} isOpen={isOpen} onClose={onClose}>
      <dl className="inbox-key-list">
        {text.list.map(([key, what]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <p className="muted">{text.off}</p>
      <label className="row">
        <input type="checkbox" checked={isOn} onChange={({ target }) => turnKeys(target.checked)} />{" "}
        {text.enabled}
      </label>
      <div className="dialog-actions">
        <Button onClick={onClose}>{page.common.close}</Button>
      </div>
    </Dialog>
  );
}
