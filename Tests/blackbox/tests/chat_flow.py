"""The example chat in a browser, on a real service with its database and webhook."""

import datetime

from support.chat import ChatBackend, ChatBrowser, FlowCase
from support.waiting import wait_until


class Flow(FlowCase):
    def test_a_message_is_shown_answered_and_counted_once(self):
        user = self.trial_user()
        self.browser.chat(user)
        self.browser.wait_for_text(".indicator .words", "42 of 100")
        self.browser.send_message("Good morning")
        self.assertNotEqual(self.browser.wait_for_answer("Good morning"), "")
        self.browser.wait_for_text(".indicator .words", "41 of 100")
        self.assert_count(user, 59)
        self.assertEqual(self.browser.find("#text").get_attribute("value"), "")
        self.assertEqual(self.browser.focus(), "text")
        # Screen readers announce the whole answer, not each piece.
        self.assertEqual(self.browser.text("#announcer"), self.browser.answer("Good morning").strip())
        self.assertEqual(self.browser.find("#conversation").get_attribute("aria-live"), "off")
        self.browser.reload()
        self.assertEqual(self.browser.user_messages(), ["Good morning"])

    def test_a_message_is_shown_as_text_and_not_as_markup(self):
        user = self.trial_user()
        self.browser.chat(user)
        text = "<img src=x onerror=\"document.title='got you'\"> & <b>bold</b>"
        self.browser.send_message(text)
        self.browser.wait_for_answer(text)
        self.assertEqual(self.browser.all("#conversation img, #conversation b"), [])
        self.assertEqual(self.browser.driver.title, "Hearth")

    def test_an_operator_resets_in_psql_and_the_gate_opens_without_a_reload(self):
        user = self.subscriber(used=800)
        self.browser.chat(user)
        self.browser.wait_for("#gate")
        self.browser.run("window.isSame = true; document.getElementById('subscribe').focus()")
        self.psql.run(f"select * from reset_usage('{user}')")
        self.browser.wait_for("#composer")
        self.assertFalse(self.browser.is_shown("#gate"))
        self.assertTrue(self.browser.run("return window.isSame"))
        self.assertEqual(self.browser.focus(), "text", "the focus moves to the message field")
        self.browser.send_message("I'm back")
        self.browser.wait_for_answer("I'm back")
        self.assert_count(user, 1)

    def test_the_last_message_closes_the_gate_and_an_unfinished_text_stays(self):
        user = self.trial_user(99)
        self.browser.chat(user)
        self.browser.send_message("The last one")
        self.browser.wait_for_answer("The last one")
        self.browser.wait_for("#gate")
        self.assertEqual(self.browser.text("#gate-words"), self.usage(user)["banner"])
        self.psql.run(f"select * from grant_messages('{user}', 5, 'support case')")
        self.browser.wait_for("#composer")
        self.browser.write("half a thought")
        self.send_command(f"CONSUME {user} 5")
        self.browser.wait_for("#gate")
        self.psql.run(f"select * from grant_messages('{user}', 5, 'second support case')")
        self.browser.wait_for("#composer")
        self.assertEqual(self.browser.find("#text").get_attribute("value"), "half a thought")
        self.assert_count(user, 105)

    def test_two_windows_of_a_user_stay_in_step(self):
        user = self.trial_user()
        self.browser.chat(user)
        first, second = self.second_window()
        self.browser.chat(user)
        self.browser.send_message("From the second window")
        self.browser.wait_for_answer("From the second window")
        self.browser.show_window(first)
        self.browser.wait_for_text(".indicator .words", "41 of 100")
        self.browser.wait_for_answer("From the second window")
        self.browser.send_message("And back")
        self.browser.wait_for_answer("And back")
        self.browser.show_window(second)
        self.browser.wait_for_answer("And back")
        self.browser.wait_for_text(".indicator .words", "40 of 100")
        self.assert_count(user, 60)

    def test_more_windows_than_a_browser_has_connections_work_and_update_when_shown(self):
        # A separate browser, because windows without a connection would delay the other tests.
        browser = ChatBrowser(self.chat)
        self.addCleanup(browser.close)
        users = [self.trial_user() for _ in range(9)]
        browser.chat(users[0])
        first = browser.driver.current_window_handle
        for user in users[1:]:
            browser.driver.switch_to.new_window("tab")
            browser.chat(user)
        browser.send_message("In the last window")
        browser.wait_for_answer("In the last window")
        self.send_command(f"CONSUME {users[0]}")
        browser.show_window(first)
        browser.wait_for_text(".indicator .words", "41 of 100")
        self.send_command(f"CONSUME {users[0]}")
        browser.wait_for_text(".indicator .words", "40 of 100")

    def test_a_choice_without_effect_is_offered_again_after_the_answer(self):
        user = self.subscriber(used=700)
        self.send_command(f"SETPLAN {user} paid state=billing_retry")
        self.browser.chat(user)
        self.browser.wait_for("#gate")
        self.browser.run(
            "const real = window.fetch; window.fetch = (address, request) =>"
            "  request?.method === 'POST'"
            "    ? new Promise((resolve) => { window.answer = () => resolve(new Response(null, {status: 204})); })"
            "    : real(address, request);"
        )
        self.browser.find("#subscribe").click()
        self.browser.wait_for_text("#subscribe", "One moment…")
        self.browser.run("window.answer()")
        self.browser.wait_for_text("#subscribe", "Fix payment")

    def test_without_a_webhook_nothing_is_for_sale(self):
        chat = ChatBackend(self.service, *self.CHAT_FLAGS, has_store=False)
        self.addCleanup(chat.stop)
        other = ChatBrowser(chat)
        self.addCleanup(other.close)
        user = self.subscriber(used=700)
        self.send_command(f"SETPLAN {user} paid state=billing_retry")
        other.chat(user)
        other.wait_for("#gate")
        self.assertFalse(other.is_shown("#subscribe"))
        other.find("#gate-details").click()
        other.wait_for("#sheet")
        other.find("#manage").click()
        other.wait_for_text("#sheet .problem", "I couldn't open subscription management. Try again from your device Settings.")
        self.assertFalse(other.is_shown("#choices"))
        other.find("#sheet [aria-label=Close]").click()
        # The sheet's close event comes later than the click.
        wait_until(lambda: not other.is_shown("#gate .problem"), "the sheet's text disappears with it")
        self.assertFalse(other.is_shown("#gate-restore"))
        self.assertTrue(other.is_shown("#notice"))
        self.assertFalse(other.is_shown("#notice button"))

    def test_an_older_read_does_not_replace_a_newer_change(self):
        user = self.trial_user()
        self.browser.chat(user)
        self.browser.wait_for_text(".indicator .words", "42 of 100")
        self.watch(".indicator .words")
        # The answer is read before the change and arrives after it.
        self.browser.run(
            "const real = window.fetch; window.fetch = async (...request) => {"
            "  window.fetch = real; const answer = await real(...request); const text = await answer.text();"
            "  await new Promise((resolve) => { window.release = resolve; });"
            "  return new Response(text); };"
            "document.dispatchEvent(new Event('visibilitychange'))"
        )
        wait_until(lambda: self.browser.run("return Boolean(window.release)"), "it is read")
        self.send_command(f"CONSUME {user}")
        self.browser.wait_for_text(".indicator .words", "41 of 100")
        self.browser.run("window.release()")
        self.send_command(f"CONSUME {user}")
        self.browser.wait_for_text(".indicator .words", "40 of 100")
        numbers = [text.split("· ")[1].split(" ")[0] for text in self.watched()]
        self.assertEqual(numbers, ["42", "41", "40"])

    def test_the_subscription_can_be_cancelled_and_resumed_in_the_sheet(self):
        user = self.trial_user(100)
        self.browser.chat(user)
        self.browser.wait_for("#gate")
        self.browser.find("#subscribe").click()
        self.browser.wait_for("#composer")
        self.assertEqual(self.usage(user)["plan"], "paid")
        self.choose("cancel")
        self.browser.wait_for_text("#notice", "Your subscription is active until")
        self.assertEqual(self.usage(user)["state"], "cancelled")
        self.choose("resume")
        wait_until(lambda: not self.browser.is_shown("#notice"), "the notice disappears")
        self.assertEqual(self.usage(user)["state"], "active")
        self.choose("subscribe")
        self.browser.wait_for_text("#plan-and-usage", "Pro\n")
        self.assertEqual(self.usage(user)["plan"], "pro")

    def choose(self, action):
        if not self.browser.is_shown("#sheet"):
            self.browser.find("#open-settings").click()
            self.browser.find("#plan-and-usage").click()
            self.browser.find("#manage").click()
        self.browser.wait_for(f"#choices [data-action={action}][aria-disabled=false]")
        self.browser.find(f"#choices [data-action={action}]").click()

    def test_a_downgrade_shows_what_stays_and_what_changes_before_it_is_confirmed(self):
        user = self.trial_user(100)
        chosen = self.chat.request("POST", f"/users/{user}/subscription", {"action": "subscribe", "plan": "pro"})
        self.assertEqual(chosen.status, 204, chosen.text)
        self.browser.chat(user)
        renews = self.usage(user)["renews"]
        day = datetime.date.fromisoformat(renews[:10])
        self.choose("downgrade")
        self.browser.wait_for("#confirm")
        text = self.browser.text(".question")
        self.assertIn("Everything you've written so far stays", text)
        self.assertIn(f"800 messages every month, from {day:%B} {day.day}, {day.year} on.", text)
        self.browser.find("#keep").click()
        self.assertFalse(self.browser.is_shown(".question"))
        self.assertEqual(self.browser.focus(), "manage")
        next_plan = f"select next_plan from headroom.subscriptions where user_id = '{user}' and plan = 'pro'"
        self.assertIsNone(self.psql.value(next_plan))
        self.browser.find("#manage").click()
        self.browser.find("#choices [data-action=downgrade]").click()
        self.browser.find("#confirm").click()
        self.browser.wait_for_text("#sheet .outcome", "Premium begins with your next renewal.")
        self.assertEqual(self.psql.value(next_plan), "paid")
        usage = self.usage(user)
        self.assertEqual((usage["plan"], usage["next_plan"]), ("pro", "paid"))
        # Headroom stores the next plan, so a new page shows it.
        self.browser.chat(user)
        self.browser.find("#open-settings").click()
        self.browser.find("#plan-and-usage").click()
        self.browser.wait_for_text("#sheet .outcome", "Premium begins with your next renewal.")

    def test_restoring_finds_an_active_subscription_or_reports_none(self):
        user = self.trial_user(100)
        self.browser.chat(user)
        self.browser.wait_for("#gate")
        self.browser.find("#gate-restore").click()
        self.browser.wait_for_text(
            "#gate .outcome", "I wasn't able to find a previous subscription. If you think this is wrong, reach out to support."
        )
        self.browser.find("#open-settings").click()
        self.browser.find("#restore").click()
        self.browser.wait_for_text("#settings .outcome", "I didn't find an active subscription to restore.")
        self.assertFalse(self.browser.is_shown("#gate .outcome"), "the result appears where the user pressed the button")
        bought = self.chat.request("POST", f"/users/{user}/subscription", {"action": "subscribe", "plan": "paid"})
        self.assertEqual(bought.status, 204, bought.text)
        self.browser.find("#restore").click()
        self.browser.wait_for_text("#settings .outcome", "I found your subscription.")
        self.browser.complaints()

    def test_a_failed_payment_is_fixed_in_the_gate(self):
        user = self.subscriber(used=200)
        self.send_command(f"SETPLAN {user} paid state=billing_retry")
        self.browser.chat(user)
        self.browser.wait_for("#gate")
        self.assertEqual(self.browser.text("#subscribe"), "Fix payment")
        self.assertFalse(self.browser.is_shown("#notice button"), "there is one button for it")
        self.browser.find("#subscribe").click()
        self.browser.wait_for("#composer")
        wait_until(lambda: not self.browser.is_shown("#notice"), "the notice disappears")
        self.assertEqual(self.usage(user)["state"], "active")

    def test_the_keyboard_is_enough(self):
        from selenium.webdriver.common.keys import Keys

        user = self.trial_user()
        self.browser.chat(user)
        self.browser.press(Keys.TAB)
        self.assertEqual(self.browser.focus(), "Skip to your message")
        self.browser.press(Keys.ENTER)
        self.assertEqual(self.browser.focus(), "text")
        self.browser.press("By keys", Keys.ENTER)
        self.browser.wait_for_answer("By keys")
        self.assertEqual(self.browser.focus(), "text")
        self.back()
        self.assertIn("Show details", self.browser.run("return document.activeElement.textContent"))
        self.assert_focus_shows()
        self.browser.press(Keys.ENTER)
        self.browser.wait_for("#sheet")
        self.assertEqual(self.browser.focus(), "sheet-title")
        self.tab_to("manage")
        self.browser.press(Keys.SPACE)
        self.browser.wait_for("#choices")
        self.browser.press(Keys.ESCAPE)
        wait_until(lambda: not self.browser.is_shown("#sheet"), "the sheet closes")
        self.assertIn("Show details", self.browser.run("return document.activeElement.textContent"), "the focus returns to where the sheet was opened")
        self.browser.press(Keys.TAB)
        self.assertEqual(self.browser.focus(), "text")
        for _ in range(20):
            self.back()
            if self.browser.focus() == "open-settings":
                break
        self.assert_focus_shows()
        self.browser.press(Keys.ENTER)
        self.browser.wait_for("#settings")
        self.tab_to("plan-and-usage")
        self.browser.press(Keys.ENTER)
        self.browser.wait_for("#sheet")
        self.browser.press(Keys.ESCAPE)
        self.assertEqual(self.browser.focus(), "plan-and-usage")
        self.browser.press(Keys.ESCAPE)
        self.assertEqual(self.browser.focus(), "open-settings")
        self.assert_count(user, 59)

    def back(self):
        from selenium.webdriver import ActionChains
        from selenium.webdriver.common.keys import Keys

        ActionChains(self.browser.driver).key_down(Keys.SHIFT).send_keys(Keys.TAB).key_up(Keys.SHIFT).perform()

    def tab_to(self, name, most=12):
        from selenium.webdriver.common.keys import Keys

        for _ in range(most):
            self.browser.press(Keys.TAB)
            if self.browser.focus() == name:
                return self.assert_focus_shows()
        self.fail(f"TAB does not come to {name}, but to {self.browser.focus()}")

    def assert_focus_shows(self):
        self.assertNotEqual(self.browser.run("return document.activeElement.tagName"), "BODY", "nothing has the focus")
        outline = self.browser.run("return getComputedStyle(document.activeElement).outlineStyle")
        self.assertNotEqual(outline, "none", f"{self.browser.focus()} does not show that it has the focus")
