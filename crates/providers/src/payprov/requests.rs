//! The calls made to the payment provider, one function each.

use chrono::{DateTime, Utc};
use serde::de::DeserializeOwned;

use super::client::{Form, PayprovClient, PayprovError, field};
use super::objects::{Customer, HostedPage, Invoice, List, PaymentMethod, Subscription};
use mailgate_types::ids::SubscriberId;

/// Maximum objects per page of a list.
const PAGE: u32 = 100;

/// The first version in which Checkout has `allowed_payment_method_types` (its changelog).
const ALLOWED_TYPES_SINCE: &str = "2026-09-30";

/// Maximum pages of a list that are read.
const PAGES: usize = 20;

/// How a subscription starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beginning {
    /// With a trial of this many days; without a payment method it ends with the trial.
    Trial(u32),
    /// Unpaid: its first invoice stays open until there is a payment method and it is paid.
    Unpaid,
    /// Charged immediately, or not created at all.
    Paid,
}

impl PayprovClient {
    /// Creates a customer.
    pub async fn create_customer(
        &self,
        subscriber: SubscriberId,
        email: &str,
        name: &str,
        key: &str,
    ) -> Result<Customer, PayprovError> {
        let form = [
            field("email", email),
            field("name", name),
            field("metadata[mailgate_subscriber]", subscriber),
        ];
        self.post("customers", &form, key).await
    }

    /// Updates a customer's address and name.
    pub async fn name_customer(
        &self,
        id: &str,
        email: &str,
        name: &str,
        key: &str,
    ) -> Result<Customer, PayprovError> {
        let form = [field("email", email), field("name", name)];
        self.post(&format!("customers/{id}"), &form, key).await
    }

    /// Fetches a customer.
    pub async fn customer(&self, id: &str) -> Result<Customer, PayprovError> {
        let expand = "invoice_settings.default_payment_method";
        let path = format!("customers/{id}");
        self.get(&path, &[field("expand[]", expand)]).await
    }

    /// Finds the customer that was created for a subscriber, if there is one: in case that response was lost.
    pub async fn find_customer(
        &self,
        subscriber: SubscriberId,
        email: &str,
    ) -> Result<Option<Customer>, PayprovError> {
        let query = [field("email", email), field("limit", PAGE)];
        let list: List<Customer> = self.get("customers", &query).await?;
        let wanted = subscriber.to_string();
        Ok(list.data.into_iter().find(|customer| {
            !customer.deleted && customer.metadata.mailgate_subscriber.as_ref() == Some(&wanted)
        }))
    }

    /// Makes `payment_method` the customer's default.
    pub async fn set_default_payment_method(
        &self,
        customer: &str,
        payment_method: &str,
        key: &str,
    ) -> Result<Customer, PayprovError> {
        let name = "invoice_settings[default_payment_method]";
        let form = [field(name, payment_method)];
        self.post(&format!("customers/{customer}"), &form, key)
            .await
    }

    /// Fetches a payment method.
    pub async fn payment_method(&self, id: &str) -> Result<PaymentMethod, PayprovError> {
        self.get(&format!("payment_methods/{id}"), &[]).await
    }

    /// The payment method that a customer entered last.
    pub async fn newest_payment_method(
        &self,
        customer: &str,
    ) -> Result<Option<PaymentMethod>, PayprovError> {
        let path = format!("customers/{customer}/payment_methods");
        let list: List<PaymentMethod> = self.get(&path, &[field("limit", PAGE)]).await?;
        // Of those created in the same second, the first in the list is the newest.
        let methods = list.data.into_iter().rev();
        Ok(methods.max_by_key(|method| method.created))
    }

    /// Creates a subscription.
    ///
    /// # Errors
    ///
    /// [`PayprovError`]: refused with 402 if it requires payment and that fails.
    pub async fn create_subscription(
        &self,
        subscriber: SubscriberId,
        customer: &str,
        quantity: i64,
        beginning: Beginning,
        key: &str,
    ) -> Result<Subscription, PayprovError> {
        let mut form: Form = vec![
            field("customer", customer),
            field("items[0][price]", self.price()),
            field("items[0][quantity]", quantity),
            field("metadata[mailgate_subscriber]", subscriber),
        ];
        match beginning {
            Beginning::Trial(days) => form.extend([
                field("trial_period_days", days),
                field(
                    "trial_settings[end_behavior][missing_payment_method]",
                    "cancel",
                ),
            ]),
            // Any other behavior is refused for a customer without a payment method.
            Beginning::Unpaid => form.push(field("payment_behavior", "default_incomplete")),
            Beginning::Paid => form.push(field("payment_behavior", "error_if_incomplete")),
        }
        self.post("subscriptions", &form, key).await
    }

    /// Fetches a subscription, with its customer and the customer's payment method expanded.
    pub async fn subscription(&self, id: &str) -> Result<Subscription, PayprovError> {
        let path = format!("subscriptions/{id}");
        let expanded = [
            "customer",
            "customer.invoice_settings.default_payment_method",
        ];
        let query = expanded.map(|name| field("expand[]", name));
        self.get(&path, &query).await
    }

    /// All subscriptions of a customer, including ended ones, newest first.
    pub async fn subscriptions(&self, customer: &str) -> Result<Vec<Subscription>, PayprovError> {
        let query = [field("customer", customer), field("status", "all")];
        let id_of = |subscription: &Subscription| subscription.id.clone();
        self.all("subscriptions", &query, id_of).await
    }

    /// All objects of a list, up to [`PAGES`] pages.
    async fn all<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(String, String)],
        id_of: impl Fn(&T) -> String,
    ) -> Result<Vec<T>, PayprovError> {
        let mut all: Vec<T> = Vec::new();
        for _ in 0..PAGES {
            let mut query = query.to_vec();
            query.push(field("limit", PAGE));
            if let Some(last) = all.last() {
                query.push(field("starting_after", id_of(last)));
            }
            let page: List<T> = self.get(path, &query).await?;
            let (is_last, count) = (!page.has_more, page.data.len());
            all.extend(page.data);
            if is_last || count == 0 {
                break;
            }
        }
        Ok(all)
    }

    /// Sets the quantity, with proration for the rest of the period.
    pub async fn set_quantity(
        &self,
        subscription: &str,
        item: &str,
        quantity: i64,
        key: &str,
    ) -> Result<Subscription, PayprovError> {
        let form = [
            field("items[0][id]", item),
            field("items[0][quantity]", quantity),
            field("proration_behavior", "create_prorations"),
        ];
        self.post(&format!("subscriptions/{subscription}"), &form, key)
            .await
    }

    /// Whether a subscription ends with its period, or renews.
    pub async fn set_cancel_at_period_end(
        &self,
        subscription: &str,
        cancels: bool,
        key: &str,
    ) -> Result<Subscription, PayprovError> {
        let form = [field("cancel_at_period_end", cancels)];
        self.post(&format!("subscriptions/{subscription}"), &form, key)
            .await
    }

    /// Makes `payment_method` a subscription's own, for subscriptions that have one.
    pub async fn set_subscription_payment_method(
        &self,
        subscription: &str,
        payment_method: &str,
        key: &str,
    ) -> Result<Subscription, PayprovError> {
        let form = [field("default_payment_method", payment_method)];
        self.post(&format!("subscriptions/{subscription}"), &form, key)
            .await
    }

    /// Ends a subscription immediately.
    pub async fn end_subscription(&self, subscription: &str) -> Result<Subscription, PayprovError> {
        self.delete(&format!("subscriptions/{subscription}")).await
    }

    /// Fetches an invoice.
    pub async fn invoice(&self, id: &str) -> Result<Invoice, PayprovError> {
        self.get(&format!("invoices/{id}"), &[]).await
    }

    /// The open invoices of a subscription, oldest first.
    pub async fn open_invoices(
        &self,
        customer: &str,
        subscription: &str,
    ) -> Result<Vec<Invoice>, PayprovError> {
        let query = [
            field("customer", customer),
            field("subscription", subscription),
            field("status", "open"),
        ];
        let id_of = |invoice: &Invoice| invoice.id.clone();
        let mut invoices = self.all("invoices", &query, id_of).await?;
        invoices.retain(Invoice::is_open);
        invoices.reverse();
        invoices.sort_by_key(|invoice| invoice.created.map(|at: DateTime<Utc>| at.timestamp()));
        Ok(invoices)
    }

    /// A customer's latest invoices, newest first.
    pub async fn latest_invoices(
        &self,
        customer: &str,
        limit: u32,
    ) -> Result<Vec<Invoice>, PayprovError> {
        let query = [field("customer", customer), field("limit", limit)];
        let list: List<Invoice> = self.get("invoices", &query).await?;
        Ok(list.data)
    }

    /// Pays an invoice with the customer's payment method.
    ///
    /// # Errors
    ///
    /// [`PayprovError`]: refused with 402 if the payment fails.
    pub async fn pay_invoice(&self, id: &str, key: &str) -> Result<Invoice, PayprovError> {
        self.post(&format!("invoices/{id}/pay"), &[], key).await
    }

    /// Creates a Checkout page for entering a payment method, with the URLs that it returns to.
    pub async fn checkout_setup(
        &self,
        customer: &str,
        success_url: &str,
        cancel_url: &str,
        key: &str,
    ) -> Result<HostedPage, PayprovError> {
        // Later versions don't know the old name any more, earlier ones don't know the new one yet.
        let has_new_name = *self.settings.api_version >= *ALLOWED_TYPES_SINCE;
        let types = if has_new_name {
            "allowed_payment_method_types[0]"
        } else {
            "payment_method_types[0]"
        };
        let form = [
            field("mode", "setup"),
            field("customer", customer),
            field(types, "card"),
            field("success_url", success_url),
            field("cancel_url", cancel_url),
        ];
        self.post("checkout/sessions", &form, key).await
    }

    /// Creates a session of the provider's customer portal.
    pub async fn portal(
        &self,
        customer: &str,
        return_url: &str,
        key: &str,
    ) -> Result<HostedPage, PayprovError> {
        let form = [field("customer", customer), field("return_url", return_url)];
        self.post("billing_portal/sessions", &form, key).await
    }
}
